"""Mistakes a user can mend: wrong names, broken files, impossible settings.

The command line prints the message without a traceback and exits with code 2. Everything else is a bug
of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext


class ConfedError(Exception):
    """What is wrong, where (file, line, option), and what to do about it."""

    exit_code = 2


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
        raise type(error)(f"{what}: {error}") from None


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
