"""Rows of the tables in the docs: figures over seeds, beside what was printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Result = Mapping[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    shown = [f"| {' | '.join(line)} |" for line in (head, *rows)]
    return "\n".join([shown[0], "|" + "---|" * len(head), *shown[1:]])


def pair(
    results: Sequence[Result],
    values: Callable[[Result], Mapping[str, float]] = lambda r: r,
    prefix: str = "",
    at: int = 10,
) -> str:
    """Mean ± standard deviation over seeds of HR / NDCG, of the ten best or as many."""
    if not results:
        return "–"
    found = np.array([[values(r)[f"{prefix}{metric}@{at}"] for metric in ("hr", "ndcg")] for r in results])
    mean = [f"{m:.2f}" for m in found.mean(axis=0)]
    if len(found) > 1:
        mean = [f"{m} ± {s:.2f}" for m, s in zip(mean, found.std(axis=0, ddof=1), strict=True)]
    return " / ".join(mean)


def printed(figures: Sequence[float] | None) -> str:
    """A published pair, or a dash."""
    return " / ".join(f"{value:.2f}" for value in figures) if figures else "–"


def when_lost(result: Result) -> str:
    """Of a cell that diverged, the round: its error begins with it."""
    return f"diverged in {result['diverged'].split(':')[0]}"
