"""Consensus degradation: who is far from what everybody agrees on, and whether it is the unusual (Fed3CR, section III).

The paper bounds the distance of the consensus from a client's own optimum by how much the client's data differs from
that of others. Here the distance is measured: from the table the server sends to what one round of local training makes
of it, as a root mean square over entries, for all clients in one round. How unusual a client is, is 1 − its mean cosine
similarity with all other clients, on the items they trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import spearmanr

from confed.analysis.style import COLOUR_BAR, PALETTE, figure
from confed.ragged import Ragged

Floats = NDArray[np.float64]

_SCALE = [[place, PALETTE[name][0]] for place, name in ((0.0, "low"), (1.0, "high"))]
_TICKS = (1, 3, 10, 30, 100, 300, 1000, 3000)
_WEAK = 0.1
"""Rank correlations nearer to zero than this are called none."""


@dataclass(frozen=True)
class Degradation:
    """Of every client: its distance from the consensus, how unusual it is, and how many items it trained on."""

    distance: Floats
    unusual: Floats
    items: NDArray[np.int64]

    @property
    def rank_correlation(self) -> float:
        """Spearman's, of distance and unusualness; 0 where either is the same for all."""
        if np.ptp(self.distance) == 0 or np.ptp(self.unusual) == 0:
            return 0.0
        return float(spearmanr(self.distance, self.unusual).statistic)

    def figure(self) -> go.Figure:
        ticks = {"tickvals": np.log10(_TICKS), "ticktext": [f"{tick:,}" for tick in _TICKS]}
        bar = {**COLOUR_BAR, **ticks, "title": {"text": "items", "font": {"size": 13}}}
        marker = {"color": np.log10(self.items), "colorscale": _SCALE, "size": 5, "colorbar": bar}
        points = go.Scatter(x=self.unusual, y=self.distance, mode="markers", marker=marker)
        title = "Distance from the consensus against unusualness"
        return figure([points], title, "1 − mean similarity with other clients", "distance from the consensus")

    @property
    def said(self) -> str:
        """What is seen."""
        found = self.rank_correlation
        tendency = "the more unlike others, the further away" if found > 0 else "the more unlike others, the nearer"
        if abs(found) < _WEAK:
            tendency = "hardly any relation"
        return f"The rank correlation over {len(self.distance)} clients is {found:+.2f}: {tendency}."


def degradation(distance: Floats, positives: Ragged) -> Degradation:
    return Degradation(distance, unusualness(positives), positives.lengths)


def unusualness(positives: Ragged) -> Floats:
    """(clients,): 1 − the mean over all others of the cosine between the sets of items trained on."""
    distinct = positives.unique()
    clients = len(distinct)
    width = int(distinct.values.max(initial=0)) + 1
    lengths = np.sqrt(np.maximum(distinct.lengths, 1).astype(np.float64))
    unit = csr_array((1.0 / lengths[distinct.row_of], (distinct.row_of, distinct.values)), shape=(clients, width))
    likeness = unit @ np.asarray(unit.sum(axis=0)).ravel()
    itself = (distinct.lengths > 0).astype(np.float64)
    found: Floats = 1.0 - (likeness - itself) / max(clients - 1, 1)
    return found
