"""Mistakes a user can mend: wrong names, broken files, impossible settings.

The command line prints the message without a traceback and exits with code 2. Everything else is a bug
of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from confed.visible import cut, quoted, visible_lines


class ConfedError(Exception):
    """What is wrong, where (file, line, option), and what to do about it.

    Messages name options as the command line spells them; whoever reads one in Python reads of keywords.
    """

    exit_code = 2

    def __str__(self) -> str:
        return visible_lines(in_python(self.message))

    @property
    def message(self) -> str:
        """As it was written, for the terminal."""
        return str(self.args[0]) if self.args else ""


_OPTION = re.compile(
    r"`confed run --resume (?P<run>[^`]+)`"
    r"|(?<![\w/-])--(?:set (?P<key>[a-z_.]+)=(?P<value>[\w.]+(?:,\d+)*)|no-(?P<off>holdout|header)"
    r"|(?P<role>user|item|rating|timestamp)-column"
    r"|(?P<name>rounds|seeds?|protocol|engine|workers|address|chunk|dtype|domain|history|like|out|folder|name|overwrite"
    r"|encoding|separator|format|patience|eval-every|min-interactions|date-order|checkpoint-seconds)"
    r"(?: (?P<word>strict|paper|warm|cold|everything|local|processes|ray|dmy|mdy|\d+)\b)?)"
)
"""An option as one types it in a shell; what is none stays as it is."""
_QUOTED = re.compile(r"('[^']*')")


def in_python(text: str) -> str:
    """A message about options as one about keywords. What stands between quotes is data."""
    parts = _QUOTED.split(text)
    return "".join(part if place % 2 else _OPTION.sub(_spelled, part) for place, part in enumerate(parts))


def _spelled(found: re.Match[str]) -> str:
    if found["run"]:
        return f'`confed.resume("{found["run"]}")`'
    if found["key"]:
        return f'options={{"{found["key"]}": {_literal(found["value"])}}}'
    if found["off"]:
        return f"{found['off']}=False"
    if found["role"]:
        return f"{found['role']}="
    return f"{found['name'].replace('-', '_')}={_literal(found['word']) if found['word'] else ''}"


def _literal(value: str) -> str:
    if "," in value:
        return f"[{value}]"
    return value if value.replace(".", "", 1).isdigit() else f'"{value}"'


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
    near = difflib.get_close_matches(cut(name.lower()), known, n=3, cutoff=0.5)
    some = ", ".join(map(cut, known[:20])) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    hint = f"did you mean {' or '.join(map(cut, near))}?" if near else f"known: {some}"
    return ConfedError(f"unknown {kind} {quoted(name)}: {hint}")
