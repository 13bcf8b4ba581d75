"""A run round by round: validation and test metrics, the loss, seconds and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.style import figure

Line = Mapping[str, Any]
History = Sequence[Line]
Floats = NDArray[np.float64]
_PARTS = ("validation", "test")


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

    def values(line: Line) -> dict[str, float]:
        return {f"{part}, {view}": parts[part][metric] for view, parts in line["views"].items() for part in _PARTS}

    return _curves(_evaluated(history), values, metric.upper(), "percent")


def domain_curves(history: History, metric: str, view: str) -> Curves:
    """A metric of validation and test items of every domain, under one view."""

    def values(line: Line) -> dict[str, float]:
        parts = {part: line["views"][view][part]["domains"] for part in _PARTS}
        return {f"{part}, {domain}": parts[part][domain][metric] for domain in parts["test"] for part in _PARTS}

    return _curves(_evaluated(history), values, f"{metric.upper()}, {view} view", "percent")


def _evaluated(history: History) -> History:
    return [line for line in history if line["views"]]


def _curves(history: History, values: Callable[[Line], Mapping[str, float]], title: str, unit: str) -> Curves:
    """From what is read off every round."""
    read = [values(line) for line in history]
    lines = {name: [each[name] for each in read] for name in read[0]}
    return Curves([line["round"] for line in history], lines, title, unit)


def loss_curve(history: History) -> Curves:
    known = [line for line in history if line["loss"] is not None]
    title = "Mean loss of the clients, by their last epoch"
    return _curves(known, lambda line: {"loss": line["loss"]}, title, "loss")


def domain_losses(history: History) -> Curves:
    """Of companies, as the server's notes have them."""
    return _curves(history, lambda line: line["server"]["losses"], "Loss of every company, mean of its epochs", "loss")


def lengths_sent(history: History) -> Curves:
    """The mean length of the rows about people that companies send, before it is clipped to what is drawn beside it."""

    def values(line: Line) -> dict[str, float]:
        noise = line["server"]["noise"]
        clip = next(iter(noise.values()))["clip"]
        return {**{domain: note["mean_length"] for domain, note in noise.items()}, "clipped to": clip}

    return _curves(history, values, "Mean length of the rows that are sent, before clipping", "length")


def clipped_shares(history: History) -> Curves:
    """The share of rows that are longer than allowed."""

    def values(line: Line) -> dict[str, float]:
        return {domain: 100 * note["clipped_share"] for domain, note in line["server"]["noise"].items()}

    return _curves(history, values, "Rows that are clipped", "percent")


def seconds_curve(history: History) -> Curves:
    title = "Seconds per round, evaluation included"
    return _curves(history, lambda line: {"seconds": line["seconds"]}, title, "seconds")


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
