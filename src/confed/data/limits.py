"""How much of a source is read at most, so that a broken or hostile file is refused before it fills the memory.

An environment variable sets each limit; docs/data.md lists them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from confed.errors import ConfedError

_CHUNK = 1 << 20


class SupportsRead(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Limit:
    """A number that nothing may exceed."""

    variable: str
    usual: Callable[[], int]
    shown: Callable[[int], str]
    """How a number of this kind is written."""

    @property
    def most(self) -> int:
        told = os.environ.get(self.variable)
        if not told:
            return self.usual()
        if not told.isdecimal() or len(told) > 18 or not int(told):
            raise ConfedError(f"{self.variable}={told[:40]!r}: give a whole number above 0, such as {self.usual()}")
        return int(told)

    def require(self, found: int, what: str) -> None:
        """Raise if it is too much. `what` says of which source the number is, and of what."""
        if found > self.most:
            raise self.exceeded(f"{what} {self.shown(found)}")

    def exceeded(self, what: str) -> ConfedError:
        return ConfedError(
            f"{what}, the limit is {self.shown(self.most)}; if that is meant to be, set {self.variable} to more"
        )

    def read(self, file: SupportsRead, path: Path) -> bytes:
        """All that is left in `file`, in pieces: what unpacks to more than the limit is never held."""
        most, held = self.most, io.BytesIO()
        while chunk := file.read(_CHUNK):
            held.write(chunk)
            if held.tell() > most:
                raise self.exceeded(f"{path} holds more than {self.shown(most)} once it is unpacked")
        return held.getvalue()


def in_bytes(number: int) -> str:
    value, units = float(min(number, 10**30)), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:,.4g} {units[0]}"


def _quarter_of_memory() -> int:
    """While a source is read there are up to four copies of it: bytes, text, columns, sorted columns."""
    import psutil  # noqa: PLC0415 - lists of what there is must not wait for it

    return int(psutil.virtual_memory().total) // 4


BYTES = Limit("CONFED_MAX_BYTES", _quarter_of_memory, in_bytes)
"""Of one source, decompressed: of a file, a download, or made-up data."""
CELL = 16
"""Bytes that a value takes in memory at least, however short it is in the file."""
COLUMNS = Limit("CONFED_MAX_COLUMNS", lambda: 10_000, "{:,}".format)
HEADER = Limit("CONFED_MAX_HEADER", lambda: 1 << 20, in_bytes)
"""The line that names the columns of a text."""
DEPTH = Limit("CONFED_MAX_DEPTH", lambda: 64, "{:,}".format)
"""Brackets within brackets in a line of JSON."""
