"""Mistakes a user can mend: wrong names, broken files, impossible settings.

The command line prints the message without a traceback and exits with code 2. Everything else is a bug
of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial


class ConfedError(Exception):
    """What is wrong, where (file, line, option), and what to do about it.

    Messages name options as the command line spells them; whoever reads one in Python reads of keywords.
    """

    exit_code = 2

    def __str__(self) -> str:
        return in_python(self.message)

    @property
    def message(self) -> str:
        """As it was written, for the terminal."""
        return str(self.args[0]) if self.args else ""


_SPELLINGS = (
    (r"`confed run --resume ([^`]+)`", '`confed.resume("{0}")`'),
    (r"(?<![\w-])--set (\w+)=([A-Za-z]\w*)", 'options={{"{0}": "{1}"}}'),
    (r"(?<![\w-])--set (\w+)=([\d.]*\d)", 'options={{"{0}": {1}}}'),
    (r"(?<![\w-])--no-(\w+)", "{0}=False"),
    (r"(?<![\w-])--(user|item|rating|timestamp)-column", "{0}="),
    (r"(?<![\w-])--(protocol|engine|domain) ([a-z]+)", '{0}="{1}"'),
    (r"(?<![\w-])--date-order (dmy|mdy)", 'date_order="{0}"'),
    (r"(?<![\w-])--(\w+)-(\w+) (\d+)", "{0}_{1}={2}"),
    (r"(?<![\w-])--(\w+) (\d+)", "{0}={1}"),
    (r"(?<![\w-])--(\w+)-(\w+)", "{0}_{1}="),
    (r"(?<![\w-])--(\w+)", "{0}="),
)
"""From what one types in a shell to what one writes in Python, the special before the general."""


def in_python(text: str) -> str:
    """A message about options as one about keywords."""
    for flags, keywords in _SPELLINGS:
        text = re.sub(flags, partial(_spelled, keywords), text)
    return text


def _spelled(keywords: str, found: re.Match[str]) -> str:
    return keywords.format(*found.groups())


class DivergedError(ConfedError):
    """Training left what numbers can hold: other settings are needed, and the same ones will fail again."""


class MessageError(ConfedError):
    """Bytes that are not the message that was expected."""


class StoppedError(ConfedError):
    """The user broke a run off."""

    exit_code = 130


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """Errors from inside say of what they are: of which of several domains, say."""
    try:
        yield
    except ConfedError as error:
        raise type(error)(f"{what}: {error.message}") from None


def in_domain(name: str) -> AbstractContextManager[None]:
    """The same of one of several domains; the only one has no name that helps."""
    return said_of(f"domain {name}") if name else nullcontext()


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfedError:
    """The error for a name that does not exist, with the nearest names that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    some = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {some}"
    return ConfedError(f"unknown {kind} {name!r}: {hint}")
