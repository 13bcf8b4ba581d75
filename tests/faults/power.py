"""Losses of power: before and after every call that makes something durable, a run is found as the disk may have it,
and has to go on to the same end.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import confed
from confed.errors import ConfedError
from tests.faults.disk import Disk
from tests.faults.outcomes import Outcome
from tests.outcome import difference

DATA = "synthetic:users=30,items=50,interactions_per_user=10"
BEGUN, ROUNDS = 2, 4


@dataclass(frozen=True)
class Case:
    """What may be found after the power failed at a call."""

    name: str
    found: Path
    unbroken: Path
    begun: bool
    """Whether the run is sure to be there."""


def train(folder: Path, rounds: int, method: str = "fedmf") -> None:
    """A checkpoint after every round."""
    options = {"dim": 4, "batch_size": 32}
    confed.run(method, DATA, folder=folder, rounds=rounds, options=options, checkpoint_seconds=0, protocol="strict")


def cases(where: Path, seed: int, each: int = 1, method: str = "fedmf") -> Iterator[Case]:
    """A run that begins, ends, and goes on: at each call, so many of the states that the disk may be in."""
    train(where / "unbroken", ROUNDS, method)
    made: list[Case] = []

    def fail(call: str) -> None:
        begun = disk.is_sure((where / "watched" / "run" / "config.toml").resolve())
        for one in range(each):
            path = where / "found" / f"{len(made)}"
            disk.after_power_loss(path, seed * 1_000_003 + len(made))
            made.append(Case(f"{len(made) // each} {call} {one}", path / "run", where / "unbroken", begun))

    (where / "watched").mkdir()
    disk = Disk(where / "watched", fail)
    with disk.watched():
        train(where / "watched" / "run", BEGUN, method)
        confed.resume(where / "watched" / "run", rounds=ROUNDS)
    yield from made


def outcome(case: Case) -> Outcome:
    if not (case.found / "config.toml").exists():
        return Outcome(held=not case.begun, how="had not begun")
    try:
        confed.resume(case.found, rounds=ROUNDS)
        differs = difference(case.found, case.unbroken)
    except ConfedError as error:
        return Outcome(held=False, how=f"refused: {error.message}")
    except Exception:
        return Outcome(held=False, how=traceback.format_exc())
    return Outcome(held=not differs, how=differs or "went on to the same end")
