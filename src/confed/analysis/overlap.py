"""How far two views of the items rank them alike, client by client (Fed3CR, figure 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.analysis.style import figure
from confed.evaluation.overlap import rank_biased_overlap

DEPTH = 50
PERSISTENCE = 0.99
_CHUNK = 64
"""Clients whose scores are held at once."""


@dataclass(frozen=True)
class Overlap:
    """Rank-biased overlap of every client's two rankings, from 0 (nothing in common) to 1 (the same)."""

    values: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def figure(self) -> go.Figure:
        bars = go.Histogram(x=self.values, histnorm="probability density", xbins={"start": 0, "end": 1, "size": 0.02})
        title = f"Overlap of the shared and the own ranking, top {DEPTH}: mean {self.mean:.3f}"
        return figure([bars], title, f"rank-biased overlap, p = {PERSISTENCE}", "density of clients")


def view_overlap(scores: Callable[[list[int]], tuple[Tensor, Tensor] | None], clients: int) -> Overlap | None:
    """From a function that gives some clients' scores by either view; None where it gives none."""
    values = []
    for start in range(0, clients, _CHUNK):
        both = scores(list(range(start, min(start + _CHUNK, clients))))
        if both is None:
            return None
        values.append(rank_biased_overlap(best(both[0]), best(both[1]), PERSISTENCE))
    return Overlap(torch.cat(values).numpy())


def best(scores: Tensor) -> Tensor:
    """(clients, ≤ DEPTH): the numbers of the items with the highest scores, best first; ties by number."""
    return torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :DEPTH]
