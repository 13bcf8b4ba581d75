"""Two writers: of two processes that start or resume a run in one folder at once, one does and one is told so."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

import torch

import confed
from confed.errors import ConfedError
from tests.faults import kills
from tests.faults.outcomes import Outcome
from tests.outcome import difference

REFUSALS = ("is in use by", "already holds files", "the run is finished")


@dataclass(frozen=True)
class Case:
    what: Literal["start", "resume"]
    number: int

    @property
    def name(self) -> str:
        return f"two {self.what} at once ({self.number})"


def cases(count: int) -> Iterator[Case]:
    for number in range(count):
        yield Case("start", number)
        yield Case("resume", number)


def outcome(case: Case, where: Path, unbroken: Path) -> Outcome:
    folder = where / "run"
    if case.what == "resume":
        kills.train(folder, kills.Case(), rounds=2)
    said = _both(case, folder)
    refused = [one for one in said if any(words in one for words in REFUSALS)]
    if sorted(map(bool, said)) != [False, True] or len(refused) != 1:
        return Outcome(held=False, how=f"said: {said}")
    differs = difference(folder, unbroken)
    return Outcome(held=not differs, how=differs or "one did it, the other was told")


def _both(case: Case, folder: Path) -> list[str]:
    """What went wrong with each of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["confed.runs.api", "tests.faults.kills"])
    lines = [context.Pipe() for _ in range(2)]
    children = [context.Process(target=_write, args=(case, folder, there)) for _, there in lines]
    for child in children:
        child.start()
    assert all(here.recv() == "ready" for here, _ in lines)
    for here, _ in lines:
        here.send("go")
    said = [str(here.recv()) for here, _ in lines]
    for child in children:
        child.join(kills.LONGEST)
    return said


def _write(case: Case, folder: Path, line: Connection) -> None:
    torch.set_num_threads(1)
    line.send("ready")
    line.recv()
    try:
        if case.what == "start":
            kills.train(folder, kills.Case())
        else:
            notices: list[str] = []
            confed.resume(folder, rounds=kills.ROUNDS, notice=notices.append)
            line.send(" ".join(notices))
            return
        line.send("")
    except ConfedError as error:
        line.send(error.message)
    except Exception:
        line.send(traceback.format_exc())
