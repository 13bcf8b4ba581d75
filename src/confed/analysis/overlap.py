"""How far two views of the items rank them alike, client by client (Fed3CR, figure 6)."""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(frozen=True)
class Overlap:
    """Rank-biased overlap of every client's two rankings, from 0 (nothing in common) to 1 (the same)."""

    values: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def figure(self) -> go.Figure:
        bars = go.Histogram(
            x=self.values, histnorm="probability density", xbins={"start": 0, "end": 1.02, "size": 0.02}
        )
        title = f"Overlap of the shared and the own ranking, top {DEPTH}"
        return figure([bars], title, f"rank-biased overlap, p = {PERSISTENCE}", "density of clients")

    @property
    def said(self) -> str:
        """What is seen."""
        low, high = np.quantile(self.values, (0.25, 0.75))
        return f"The mean overlap is {self.mean:.3f}; half of the clients lie between {low:.3f} and {high:.3f}."


def view_overlap(scores: Iterable[tuple[Tensor, Tensor]]) -> Overlap:
    """From scores by either view, (clients, items) each, of some clients after others."""
    values = [rank_biased_overlap(best(shared), best(own), PERSISTENCE) for shared, own in scores]
    return Overlap(torch.cat(values).numpy())


def best(scores: Tensor) -> Tensor:
    """(clients, ≤ DEPTH): the numbers of the items with the highest scores, best first; ties by number."""
    return torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :DEPTH]
