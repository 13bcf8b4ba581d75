"""Kills: a run dies by SIGKILL at a call that makes something durable, or at any other moment, and has to go on to the
same end. Where clients are elsewhere, the launcher dies with all it has started, or a worker alone.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

import confed
from confed.errors import ConfedError
from tests.faults.disk import Disk
from tests.faults.outcomes import Outcome
from tests.faults.power import DATA
from tests.outcome import difference

ROUNDS = 4
GENTLE: dict[str, dict[str, float]] = {"fedrap": {"learning_rate": 0.05, "item_rate": 1.0}}
"""Steps that are meant for thousands of items, and explode where there are few."""
LONGEST = 120.0
"""Seconds for a run that takes one; the machine may be busy."""


@dataclass(frozen=True)
class Case:
    """At a call, counted from the first (`call`), or after so many seconds (`after`)."""

    method: str = "fedmf"
    place: str = "local"
    call: int | None = None
    after: float | None = None

    @property
    def name(self) -> str:
        when = f"at call {self.call}" if self.call is not None else f"after {self.after:.3f} s"
        return f"{self.method} on {self.place} {when}"


def train(folder: Path, case: Case, rounds: int = ROUNDS) -> None:
    place: dict[str, Any] = {} if case.place == "local" else {"engine": case.place, "workers": 2}
    options = {"dim": 4, "batch_size": 32, **GENTLE.get(case.method, {})}
    confed.run(case.method, DATA, folder=folder, rounds=rounds, options=options, checkpoint_seconds=0, **place)


def calls(where: Path, case: Case) -> int:
    """How many there are in an unbroken run, before and after."""
    counted = 0

    def count(call: str) -> None:
        nonlocal counted
        counted += 1

    where.mkdir(parents=True)
    with Disk(where, count).watched():
        train(where / "run", case)
    return counted


def cases(seed: int, calls: int, method: str = "fedmf", place: str = "local") -> Iterator[Case]:
    """One at every call, and as many at any moment."""
    rng = random.Random(seed)
    for call in range(calls):
        yield Case(method, place, call=call)
        yield Case(method, place, after=rng.expovariate(2.0))


def outcome(case: Case, where: Path, unbroken: Path, undisturbed: float = 0.0) -> Outcome:
    """Two programs: the one that dies, and the one that goes on. An `undisturbed` one takes so many seconds."""
    where.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    died = _killed(case, where)
    then = time.monotonic()
    found = _gone_on(where / "run", unbroken, "went on to the same end" if died else "had ended")
    return replace(found, slowest_step=max(then - began, time.monotonic() - then), undisturbed=undisturbed)


def _gone_on(folder: Path, unbroken: Path, how: str) -> Outcome:
    if not (folder / "config.toml").exists():
        return Outcome(held=True, how="had not begun")
    try:
        confed.resume(folder)
        differs = difference(folder, unbroken)
    except ConfedError as error:
        return Outcome(held=False, how=f"refused: {error.message}")
    except Exception:
        return Outcome(held=False, how=traceback.format_exc())
    return Outcome(held=not differs, how=differs or how)


def _killed(case: Case, where: Path) -> bool:
    """Whether it died before it ended. Children start from a process that has everything loaded and no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["confed.runs.api", "tests.faults.kills"])
    here, there = context.Pipe()
    child = context.Process(target=_run, args=(case, where, there))
    child.start()
    assert here.poll(LONGEST) and here.recv() == "begins"
    if case.after is not None:
        time.sleep(case.after)
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(child.pid or 0, signal.SIGKILL)
    child.join(LONGEST)
    if child.is_alive():
        child.kill()
        raise TimeoutError(f"{case.name}: still runs after {LONGEST:.0f} s")
    return child.exitcode == -signal.SIGKILL


def _run(case: Case, where: Path, line: Connection) -> None:
    """In a process of its own, which may be its last."""
    torch.set_num_threads(1)
    left = case.call

    def die(call: str) -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    line.send("begins")
    with Disk(where, die).watched():
        train(where / "run", case)
