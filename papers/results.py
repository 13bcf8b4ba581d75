"""The results of a recipe: one file of JSON lines, a finished cell a line, sorted by the names of the cells.

The file is always whole: it is written beside its place and renamed into it. Several processes may finish cells of one
recipe at the same time; each reads the file again while it has it to itself, so that none loses what another wrote.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confed.errors import ConfedError
from confed.files import written_beside


class Results:
    """The file, and the folder beside it for runs that are not finished."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unfinished = path.parent / "unfinished"
        """Not committed."""

    def __contains__(self, name: str) -> bool:
        return name in self.read()

    def read(self) -> dict[str, dict[str, Any]]:
        """What every finished cell gave, by name."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text("utf-8").splitlines()
        return dict(self._cell(number, line) for number, line in enumerate(lines, start=1))

    def _cell(self, number: int, line: str) -> tuple[str, dict[str, Any]]:
        try:
            cell = json.loads(line)
            return cell["name"], cell
        except (ValueError, KeyError, TypeError) as error:
            raise ConfedError(
                f"{self.path}, line {number}: not a finished cell ({error!r}); restore the line from git, or remove it "
                "and run the recipe again"
            ) from None

    def add(self, name: str, result: dict[str, Any]) -> None:
        """One more cell, or the same one anew."""
        with self.changed() as cells:
            cells[name] = {"name": name, **result}

    @contextmanager
    def changed(self) -> Iterator[dict[str, dict[str, Any]]]:
        """All cells by name, nobody else writing meanwhile. What is left of them at the end is what the file holds."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(self.path.parent):
            cells = self.read()
            yield cells
            lines = (json.dumps(cells[name]) + "\n" for name in sorted(cells))
            with written_beside(self.path) as draft:
                draft.write_text("".join(lines), encoding="utf-8")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time. The lock is on the folder itself; the system lets go of it when a process is killed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
