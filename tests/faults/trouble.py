"""Trouble with the disk: from some call on it is full, or cannot be written, or the folder is gone. The run ends with a
clear error, and goes on to the same end once there is room again.
"""

from __future__ import annotations

import errno
import os
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import confed
from confed.errors import ConfedError
from tests.faults import kills
from tests.faults.disk import Disk
from tests.faults.outcomes import Outcome
from tests.outcome import difference

TROUBLES = {"full": errno.ENOSPC, "over quota": errno.EDQUOT, "read-only": errno.EROFS, "broken": errno.EIO}
GONE = "gone"


@dataclass(frozen=True)
class Case:
    trouble: str
    call: int
    """From which call on."""

    @property
    def name(self) -> str:
        return f"{self.trouble} from call {self.call} on"


def cases(calls: int) -> Iterator[Case]:
    """Each trouble at every call that happens before something is done, one after another."""
    for call in range(0, calls, 2):
        yield Case([*TROUBLES, GONE][call // 2 % (len(TROUBLES) + 1)], call)


def outcome(case: Case, where: Path, unbroken: Path) -> Outcome:
    where.mkdir(parents=True)
    folder, seen = where / "run", 0

    def trouble(call: str) -> None:
        nonlocal seen
        seen += 1
        if seen <= case.call or call.startswith("after"):
            return
        if case.trouble != GONE:
            number = TROUBLES[case.trouble]
            raise OSError(number, os.strerror(number), str(folder))
        shutil.rmtree(folder, ignore_errors=True)

    try:
        with Disk(where, trouble).watched():
            kills.train(folder, kills.Case())
        differs = difference(folder, unbroken)
        return Outcome(held=not differs, how=differs or "had ended")
    except ConfedError as error:
        if str(where) not in error.message:
            return Outcome(held=False, how=f"the message names no place: {error.message}")
    except Exception:
        return Outcome(held=False, how=traceback.format_exc())
    return _afterwards(folder, unbroken)


def _afterwards(folder: Path, unbroken: Path) -> Outcome:
    if not (folder / "config.toml").exists():
        return Outcome(held=True, how="refused, and had not begun")
    try:
        confed.resume(folder)
        differs = difference(folder, unbroken)
    except Exception:
        return Outcome(held=False, how=traceback.format_exc())
    return Outcome(held=not differs, how=differs or "refused, then went on to the same end")
