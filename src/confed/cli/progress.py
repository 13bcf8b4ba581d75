"""Live progress on standard error: of a run (round, loss, validation metric, time left) and of downloads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TaskID,
    TimeRemainingColumn,
)

from confed.cli.output import Words, bars, err_console
from confed.data.catalogue import DOMAINS, REGISTRY
from confed.data.shelf import is_at_hand
from confed.data.sources import Progress as DownloadProgress

if TYPE_CHECKING:
    from confed.data.domains import Domains
    from confed.data.interactions import Interactions
    from confed.runs.log import Line
    from confed.runs.loop import Listener
    from confed.runs.settings import Settings

_UNSEEN_SECONDS = 2.0
"""A download that takes less shows no bar."""
_SILENT_SECONDS = 30.0
"""Where there is no bar, a run that still trains is heard of after so long."""
Clock = Callable[[], float]


@contextmanager
def live_progress(clock: Clock = time.monotonic) -> Iterator[Listener]:
    """A listener that draws one bar per run; where standard error is not a terminal, a line now and then."""
    columns = (
        Words("{task.description}", "bold"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Words("{task.fields[status]}"),
        TimeRemainingColumn(compact=True),
    )
    tasks: dict[str, TaskID] = {}
    landmarks = Landmarks(clock)
    with bars(*columns) as progress:

        def listen(line: Line, settings: Settings) -> None:
            name = f"{settings.method} seed {settings.seed}"
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=settings.rounds, status="")
            progress.update(tasks[name], completed=line["round"], status=status(line, settings))
            if not err_console.is_terminal and landmarks.has(line["round"], settings.rounds):
                err_console.print(f"{name}: round {line['round']}/{settings.rounds}  {status(line, settings)}")

        yield listen


def status(line: Line, settings: Settings) -> str:
    """The loss, and the metric that selects the round; before the first, what is waited for."""
    if "waiting" in line:
        return str(line["waiting"])
    parts = [] if line["loss"] is None else [f"loss {line['loss']:.4f}"]
    for view, values in list(line["views"].items())[:1]:  # the first is the one that selects the round
        metric = settings.protocol.select_metric
        parts.append(f"validation {metric} {values['validation'][metric]:.2f} ({view})")
    return "  ".join(parts)


class Landmarks:
    """Of which rounds a line is printed: of every tenth part of a run and of its last, and of the first that ends when
    nothing was printed for a while.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._printed = clock()

    def has(self, number: int, rounds: int) -> bool:
        """Whether this is one; if so, it is taken for printed."""
        now = self._clock()
        tenth = number == rounds or number % max(rounds // 10, 1) == 0
        if not tenth and now - self._printed < _SILENT_SECONDS:
            return False
        self._printed = now
        return True


def fetch(dataset: str) -> None:
    """Download a registered dataset that is not at hand, with progress and its terms."""
    if (dataset in REGISTRY or dataset in DOMAINS) and not is_at_hand(dataset):
        with download_progress() as progress:
            get(dataset, progress)


def get(dataset: str, progress: DownloadProgress) -> Interactions | Domains:
    """A registered dataset, of one domain or of several, fetched if need be."""
    from confed.data.registry import get_dataset, load_domains

    if dataset in DOMAINS:
        return load_domains(dataset, progress=progress, notice=notice)
    return get_dataset(dataset, progress, notice)


def notice(text: str) -> None:
    err_console.print(text, soft_wrap=True)


@contextmanager
def download_progress() -> Iterator[DownloadProgress]:
    """A bar on standard error, but only for what takes longer than two seconds."""
    columns = (
        Words("{task.description}"),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    drawn = bars(*columns, transient=True)
    tasks: dict[str, TaskID] = {}

    def progress(what: str, done: int, total: int | None) -> None:
        if what not in tasks:
            tasks[what] = drawn.add_task(what, total=total)
        drawn.update(tasks[what], completed=done)

    late = threading.Timer(_UNSEEN_SECONDS, drawn.start)
    late.start()
    try:
        yield progress
    finally:
        late.cancel()
        late.join()
        drawn.stop()
