"""Bugs planted on purpose: each is a mistake that somebody might make, and a part of the harness has to notice it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import confed
from confed import files as confed_files
from confed.cli import output
from confed.errors import ConfedError
from confed.runs.folder import RunFolder
from confed.runs.log import Log
from confed.runs.settings import Settings
from confed.seals import Sealed
from tests.faults import corruptions, files, power
from tests.faults.outcomes import Outcome

Found = Iterator[Outcome]
Plant = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Bug:
    name: str
    plant: Plant
    part: Callable[[Path], Found]
    """What has to notice it."""


def outcome(bug: Bug, where: Path) -> Outcome:
    """Held, if something broke: a case, or what a case is made of."""
    noticed, slowest = None, 0.0
    with bug.plant():
        cases, began = bug.part(where), time.monotonic()
        try:
            while noticed is None and (one := next(cases, None)):
                noticed = None if one.held else one.how
                slowest, began = max(slowest, time.monotonic() - began), time.monotonic()
        except ConfedError as error:
            noticed = error.message
    return Outcome(held=noticed is not None, how=noticed or "nobody noticed", slowest_step=slowest)


# --- what notices -----------------------------------------------------------------------------------------------


def _power(where: Path) -> Found:
    return (power.outcome(case) for case in power.cases(where, seed=1, each=2))


def _corruptions(where: Path) -> Found:
    shelf = corruptions.Shelf(where / "shelf")
    return (corruptions.outcome(case, shelf, where / "case") for case in corruptions.cases(1, shelf, each=15))


def _files(where: Path) -> Found:
    where.mkdir()
    return (files.outcome(case, where) for case in islice(files.cases(1, each=20), 1000))


def _second_writer(where: Path) -> Found:
    power.train(where / "run", 1)
    with RunFolder.open(where / "run").held():
        try:
            confed.resume(where / "run", rounds=2)
            yield Outcome(held=False, how="a second writer came in")
        except ConfedError as error:
            yield Outcome(held=True, how=error.message)


def _printer(where: Path) -> Found:
    name = "[bold]a[/bold]\x1b[31m"
    with output.console.capture() as printed:
        output.console.print(name)
    shown = printed.get()
    yield Outcome(held="[bold]a[/bold]" in shown and "\x1b" not in shown, how=f"printed: {shown!r}")


# --- what is planted --------------------------------------------------------------------------------------------


def _never(path: Path) -> None:
    """Nothing is brought to the disk."""


def _only_files(path: Path) -> None:
    if not path.is_dir():
        _SYNC(path)


_SYNC = confed_files.sync


@contextmanager
def _in_place(path: Path) -> Iterator[Path]:
    path.parent.mkdir(exist_ok=True)
    yield path


def _uncut(self: Log, extent: Any) -> Any:
    """Lines after the checkpoint stay."""
    return self.lines(extent)


def _all(*plants: Any) -> Plant:
    @contextmanager
    def planted() -> Iterator[None]:
        for one in plants:
            one.start()
        try:
            yield
        finally:
            for one in reversed(plants):
                one.stop()

    return planted


BUGS = (
    Bug("nothing is synced", _all(patch("confed.files.sync", _never), patch("confed.runs.log.sync", _never)), _power),
    Bug("folders are not synced", _all(patch("confed.files.sync", _only_files)), _power),
    Bug("the log is not synced", _all(patch("confed.runs.log.sync", _never)), _power),
    Bug("the log is not cut back", _all(patch.object(Log, "cut", _uncut)), _power),
    Bug("the manifest is written in place", _all(patch("confed.runs.checkpoint.written_beside", _in_place)), _power),
    Bug(
        "no digest of parts",
        _all(patch.object(Sealed, "check", lambda self, folder: folder / self.name)),
        _corruptions,
    ),
    Bug("no digest of JSON", _all(patch("confed.seals._digest", lambda content: "")), _corruptions),
    Bug(
        "no digest of the settings",
        _all(patch("confed.runs.folder.without_seal", lambda text, path: text)),
        _corruptions,
    ),
    Bug(
        "no digest of the log",
        _all(patch.object(Log, "_counted", lambda self, extent: self._read(extent.bytes))),
        _corruptions,
    ),
    Bug("no run id", _all(patch.object(Settings, "run_id", property(lambda self: "the run"))), _corruptions),
    Bug("no lock", _all(patch("confed.runs.folder.locked", lambda *_, **__: nullcontext())), _second_writer),
    Bug("markup in names", _all(patch.object(output.console, "_markup", True)), _printer),
    Bug("control characters pass", _all(patch.object(output, "_printed", lambda text: text)), _printer),
    Bug(
        "libraries' errors pass",
        _all(
            patch("confed.data.readers.in_our_words", lambda *_: nullcontext()),
            patch("confed.data.parquet.in_our_words", lambda *_: nullcontext()),
        ),
        _files,
    ),
)
