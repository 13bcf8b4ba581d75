"""A run round by round: validation and test metrics, the loss, seconds and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.style import figure

History = Sequence[Mapping[str, Any]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """One value per evaluated round for every line of a picture, by its name."""

    rounds: list[int]
    lines: Mapping[str, list[float]]
    title: str
    unit: str

    def figure(self) -> go.Figure:
        traces = [go.Scatter(x=self.rounds, y=values, mode="lines", name=name) for name, values in self.lines.items()]
        return figure(traces, self.title, "round", self.unit)


def learning_curves(history: History, metric: str) -> Curves:
    """A metric of validation and test items under every view."""
    evaluated = [line for line in history if line["views"]]
    lines = {
        f"{part}, {view}": [line["views"][view][part][metric] for line in evaluated]
        for view in evaluated[0]["views"]
        for part in ("validation", "test")
    }
    return Curves([line["round"] for line in evaluated], lines, metric.upper(), "percent")


def loss_curve(history: History) -> Curves:
    known = [line for line in history if line["loss"] is not None]
    lines = {"loss": [line["loss"] for line in known]}
    return Curves([line["round"] for line in known], lines, "Mean loss of the clients, by their last epoch", "loss")


def seconds_curve(history: History) -> Curves:
    lines = {"seconds": [line["seconds"] for line in history]}
    return Curves([line["round"] for line in history], lines, "Seconds per round, evaluation included", "seconds")


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

    def figure(self) -> go.Figure:
        lines = {"up": self.up, "down": self.down}
        title = "Traffic per client"
        if self.down_to_all is not None and self.saved is not None:
            lines["down, the mean to everybody"] = self.down_to_all
            title += f" ({100 * self.saved:.0f} % of the downloads saved)"
        traces = [go.Scatter(x=self.rounds, y=kept / 1000, mode="lines", name=name) for name, kept in lines.items()]
        return figure(traces, title, "round", "kB")


def traffic(history: History) -> Traffic:
    """What a client uploads is what the mean sent to everybody would weigh on the way back."""
    clients = np.array([line["participants"] for line in history], dtype=np.float64)
    up, down = (np.array([line[name] for line in history]) / clients for name in ("upload_bytes", "download_bytes"))
    pushes = "group" in history[0].get("server", {})
    return Traffic([line["round"] for line in history], up, down, up.copy() if pushes else None)
