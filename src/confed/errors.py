"""Mistakes a user can mend: wrong names, broken files, impossible settings.

The command line prints the message without a traceback and exits with code 2. Everything else is a bug
of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

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

    def of(self, what: str) -> ConfedError:
        """The same, said of what it is."""
        return type(self)(f"{what}: {self.message}")


_OPTION = re.compile(
    r"`confed run --resume (?P<run>[^`]+)`"
    r"|`confed run (?P<method>\S+) (?P<data>[^`]+) --no-holdout(?: --rounds (?P<rounds>\d+))?`"
    r"|(?<![\w/-])--(?:set (?P<key>[a-z_.]+)=(?P<value>[\w.]+(?:,\d+)*)|no-(?P<off>holdout|header)"
    r"|(?P<role>user|item|rating|timestamp|title)-column"
    r"|(?P<name>rounds|seeds?|protocol|engine|workers|address|chunk|dtype|data|domain|history|like|out|folder|name|overwrite"
    r"|encoding|separator|header|format|time|patience|eval-every|eval-users|min-interactions|date-order"
    r"|checkpoint-seconds)(?![\w-])"
    r"(?: (?P<word>strict|paper|warm|cold|everything|local|processes|ray|dmy|mdy|real|order|none|\d+)\b)?)"
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
    if found["method"]:
        rounds = f", rounds={found['rounds']}" if found["rounds"] else ""
        return f'`confed.run("{found["method"]}", "{found["data"]}", holdout=False{rounds})`'
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
    """Training left what numbers can hold: other settings are needed, and the same ones will fail again.

    Who trains knows somebody by a number, whose place in the text is `{client}`; `called` is given the name.
    """

    def __init__(self, text: str, client: int | None = None, domain: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.client = client
        self.domain = domain

    @property
    def message(self) -> str:
        return self.text.replace(_CLIENT, f"client {self.client}")

    def called(self, name: str) -> DivergedError:
        """The same, of somebody with a name."""
        return DivergedError(self.text.replace(_CLIENT, name))

    def of(self, what: str) -> DivergedError:
        return DivergedError(f"{what}: {self.text}", self.client, self.domain)


_CLIENT = "{client}"


class NobodyNewError(ConfedError):
    """Somebody new is to be served by a method that serves only those it trained on."""


class MessageError(ConfedError):
    """Bytes that are not the message that was expected."""


class DamagedError(ConfedError):
    """A file is not what was written."""


class UnfinishedError(ConfedError):
    """A run has not ended."""


class UnwritableError(ConfedError):
    """A file cannot be written: no space, no right to, no folder."""


class StoppedError(ConfedError):
    """The user broke a run off."""

    exit_code = 130


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """Errors from inside say of what they are: of which of several domains, say."""
    try:
        yield
    except ConfedError as error:
        raise error.of(what) from None


@contextmanager
def in_domain(name: str) -> Iterator[None]:
    """The same of one of several domains; the only one has no name that helps."""
    try:
        yield
    except ConfedError as error:
        if not name:
            raise
        found = error.of(f"domain {name}")
        if isinstance(found, DivergedError):
            found.domain = name
        raise found from None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfedError:
    """The error for a name that does not exist, with the nearest names that do."""
    known = sorted(known)
    near = difflib.get_close_matches(cut(name.lower()), known, n=3, cutoff=0.5)
    some = ", ".join(map(cut, known[:20])) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    hint = f"did you mean {' or '.join(map(cut, near))}?" if near else f"known: {some}"
    return ConfedError(f"unknown {kind} {quoted(name)}: {hint}")
