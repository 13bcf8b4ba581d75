"""Which features of a client's own item table go with which of the shared one (Fed3CR, figure 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from torch import Tensor

from confed.analysis.style import COLOUR_BAR, PALETTE, figure
from confed.clients.objectives.dual import correlations

THRESHOLD = 0.003
"""Smaller entries are shown as nothing, as in the paper."""
_SCALE = [[place, PALETTE[name][0]] for place, name in ((0.0, "minus"), (0.5, "paper"), (1.0, "plus"))]
"""Nothing has the colour of the page."""


@dataclass(frozen=True)
class Correlation:
    """E = (C^E)^T V / m of one client, (d, d)."""

    client: int
    entries: NDArray[np.float64]

    @property
    def above(self) -> float:
        """The share of entries beyond the threshold."""
        return float((np.abs(self.entries) > THRESHOLD).mean())

    def figure(self) -> go.Figure:
        shown = np.where(np.abs(self.entries) > THRESHOLD, self.entries, 0.0)
        largest = float(np.abs(shown).max()) or THRESHOLD
        heat = go.Heatmap(z=shown, zmin=-largest, zmax=largest, colorscale=_SCALE, colorbar=COLOUR_BAR)
        title = f"Products of features of client {self.client}"
        return figure([heat], title, "feature of the own table", "feature of the shared table")

    @property
    def said(self) -> str:
        """What is seen."""
        return (
            f"{100 * self.above:.0f} % of the {self.entries.size} products lie beyond ±{THRESHOLD} and have a colour; "
            f"the largest is {np.abs(self.entries).max():.3g} from zero."
        )


def feature_correlation(shared: Tensor, own: Tensor, client: int) -> Correlation:
    """From one client's two tables (items, d), the shared one as the client looks at it."""
    entries = correlations(shared[None], own[None])[0]
    return Correlation(client, entries.double().numpy())
