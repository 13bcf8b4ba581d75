"""metrics.jsonl: a line for every round, and what a checkpoint says of them.

A line is written when its round is done, and is sure to be on the disk before a checkpoint counts it. What a kill left
after the last checkpoint is dropped when the run goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confed.errors import DamagedError
from confed.files import sync, unwritable_said, written_beside

Line = dict[str, Any]


@dataclass(frozen=True)
class Extent:
    """How much of the log a checkpoint counts."""

    lines: int
    bytes: int
    sha256: str


NOTHING = Extent(0, 0, hashlib.sha256().hexdigest())


class Log:
    """The log of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines, self._bytes, self._digest = 0, 0, hashlib.sha256()

    @property
    def is_begun(self) -> bool:
        """Whether there are lines, counted or not."""
        return self.path.exists() and self.path.stat().st_size > 0

    def append(self, line: Mapping[str, Any]) -> None:
        data = (json.dumps(line) + "\n").encode()
        with unwritable_said(self.path), self.path.open("ab") as file:
            file.write(data)
        self._count(1, data)

    def cut(self, extent: Extent) -> list[Line]:
        """Drop what no checkpoint counts, and go on from there; the lines that stay."""
        data = self._counted(extent)
        with written_beside(self.path) as beside:
            beside.write_bytes(data)
        self._lines, self._bytes, self._digest = 0, 0, hashlib.sha256()
        self._count(extent.lines, data)
        return _parsed(data)

    def extent(self) -> Extent:
        """Of what this object wrote and kept, once it is on the disk."""
        if self._lines:
            with unwritable_said(self.path):
                sync(self.path)
                sync(self.path.parent)
        return Extent(self._lines, self._bytes, self._digest.hexdigest())

    def lines(self, extent: Extent) -> list[Line]:
        """Those that are counted."""
        return _parsed(self._counted(extent))

    def _count(self, lines: int, data: bytes) -> None:
        self._lines += lines
        self._bytes += len(data)
        self._digest.update(data)

    def _counted(self, extent: Extent) -> bytes:
        data = self._read(extent.bytes)
        if hashlib.sha256(data).hexdigest() != extent.sha256:
            raise DamagedError(
                f"{self.path}: the {extent.lines} lines that the checkpoint counts are not there as written"
            )
        return data

    def _read(self, size: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(size)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise DamagedError(f"{self.path}: cannot be read ({error.strerror})") from None


def _parsed(data: bytes) -> list[Line]:
    return [json.loads(line) for line in data.splitlines()]
