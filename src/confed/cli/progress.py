"""Live progress of a run, on standard error: round, loss, validation metric, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from confed.cli.output import err_console
from confed.runs.runner import Line, Listener
from confed.runs.settings import Settings


@contextmanager
def live_progress() -> Iterator[Listener]:
    """A listener that draws one bar per run; where standard error is not a terminal, a line now and then."""
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(compact=True),
    )
    bars: dict[str, Any] = {}
    with Progress(*columns, console=err_console, disable=not err_console.is_terminal) as progress:

        def listen(line: Line, settings: Settings) -> None:
            name = f"{settings.method} seed {settings.seed}"
            if name not in bars:
                bars[name] = progress.add_task(name, total=settings.rounds, status="")
            progress.update(bars[name], completed=line["round"], status=status(line, settings))
            if not err_console.is_terminal and is_landmark(line["round"], settings.rounds):
                err_console.print(f"{name}: round {line['round']}/{settings.rounds}  {status(line, settings)}")

        yield listen


def status(line: Line, settings: Settings) -> str:
    """The loss, and the metric that selects the round."""
    parts = [] if line["loss"] is None else [f"loss {line['loss']:.4f}"]
    for view, values in list(line["views"].items())[:1]:  # the first is the one that selects the round
        metric = settings.protocol.select_metric
        parts.append(f"validation {metric} {values['validation'][metric]:.2f} ({view})")
    return "  ".join(parts)


def is_landmark(number: int, rounds: int) -> bool:
    """About ten lines a run."""
    return number == rounds or number % max(rounds // 10, 1) == 0
