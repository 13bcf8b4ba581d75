"""A run round by round: validation and test metrics, the loss, seconds and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.rounds import Curves, Levels
from confed.vocabulary import Metric

Line = Mapping[str, Any]
History = Sequence[Line]
Floats = NDArray[np.float64]


def learning_curves(history: History, metric: str, part: str = "validation", **shown: Any) -> Curves:
    """A metric of validation or test items under every view; `shown` are further fields of `Curves`."""

    def values(line: Line) -> dict[str, float]:
        return {view: parts[part][metric] for view, parts in line["views"].items()}

    return _quality(history, values, metric, part, shown)


def domain_curves(history: History, metric: str, view: str, part: str = "validation", **shown: Any) -> Curves:
    """A metric of validation or test items of every domain, under one view."""

    def values(line: Line) -> dict[str, float]:
        return {name: of[metric] for name, of in line["views"][view][part]["domains"].items()}

    return _quality(history, values, metric, part, shown)


def _quality(
    history: History, values: Callable[[Line], Mapping[str, float]], metric: str, part: str, shown: Mapping[str, Any]
) -> Curves:
    """In percent, of the rounds that were evaluated."""
    evaluated = [line for line in history if line["views"]]
    short = Metric.named(metric).short
    named = {"title": f"{short} on {part} items", "subject": f"{part.capitalize()} {short}"}
    return _curves(evaluated, values, unit="percent", **{**named, **shown})


def _curves(history: History, values: Callable[[Line], Mapping[str, float]], **shown: Any) -> Curves:
    """From what is read off every round."""
    read = [values(line) for line in history]
    lines = {name: [each[name] for each in read] for name in read[0]}
    return Curves([line["round"] for line in history], lines, **shown)


def loss_curve(history: History) -> Curves:
    known = [line for line in history if line["loss"] is not None]
    title = "Mean loss of the clients, by their last epoch"
    return _curves(known, lambda line: {"loss": line["loss"]}, title=title, subject="The loss", **_LOSS)


def domain_losses(history: History) -> Curves:
    """Of companies, as the server's notes have them."""
    title = "Loss of every company, mean of its epochs"
    return _curves(history, lambda line: line["server"]["losses"], title=title, subject="The loss", **_LOSS)


_LOSS = {"unit": "loss", "form": "{:.3g}"}


def lengths_sent(history: History) -> Curves:
    """The mean length of the rows about people that companies send, before it is clipped to what is drawn beside it."""
    clip = next(iter(history[0]["server"]["noise"].values()))["clip"]
    return _curves(
        history,
        lambda line: {domain: note["mean_length"] for domain, note in line["server"]["noise"].items()},
        title="Mean length of the rows that are sent, before clipping",
        unit="length",
        subject="The mean length of the rows",
        form="{:.3g}",
        from_zero=True,
        levels=Levels("what they are clipped to", {"": clip}),
    )


def clipped_shares(history: History) -> Curves:
    """The share of rows that are longer than allowed."""
    return _curves(
        history,
        lambda line: {domain: 100 * note["clipped_share"] for domain, note in line["server"]["noise"].items()},
        title="Rows that are clipped",
        unit="percent",
        subject="The share of rows that are clipped, in percent",
        from_zero=True,
    )


def seconds_curve(history: History) -> Curves:
    return _curves(
        history,
        lambda line: {"seconds": line["seconds"]},
        title="Seconds per round, evaluation included",
        unit="seconds",
        subject="The time of a round",
        form="{:.3g} s",
        from_zero=True,
    )


_TO_ALL = "down with the mean to everybody"


@dataclass(frozen=True)
class Traffic:
    """Bytes per client and round, up and down; where tables are pushed to some, also down if the mean went to all."""

    rounds: list[int]
    up: Floats
    down: Floats
    down_to_all: Floats | None

    @property
    def saved(self) -> float | None:
        """The share of the downloads that was not sent (appendix B)."""
        return None if self.down_to_all is None else float(1.0 - self.down.sum() / self.down_to_all.sum())

    @property
    def curves(self) -> Curves:
        lines = {"up": self.up, "down": self.down}
        if self.down_to_all is not None:
            lines[_TO_ALL] = self.down_to_all
        unit, size = ("MB", 1e6) if max(each.max() for each in lines.values()) >= 1e6 else ("kB", 1e3)
        return Curves(
            self.rounds,
            {name: (of / size).tolist() for name, of in lines.items()},
            title="Traffic per client and round",
            unit=unit,
            subject="Traffic of a client",
            form=f"{{:.1f}} {unit}",
            from_zero=True,
            dashed=(_TO_ALL,),
        )

    def figure(self) -> go.Figure:
        return self.curves.figure()

    @property
    def said(self) -> str:
        """What is seen, and what it saves to push a table to some only."""
        if self.saved is None:
            return self.curves.said
        share = f"{100 * abs(self.saved):.0f} % {'less' if self.saved >= 0 else 'more'}"
        return f"{self.curves.said} All downloads together are {share} than with the mean to everybody."


def traffic(history: History) -> Traffic:
    """What a client uploads is what the mean sent to everybody would weigh on the way back."""
    clients = np.array([line["participants"] for line in history], dtype=np.float64)
    up, down = (np.array([line[name] for line in history]) / clients for name in ("upload_bytes", "download_bytes"))
    pushes = "group" in history[0].get("server", {})
    return Traffic([line["round"] for line in history], up, down, up.copy() if pushes else None)
