"""The elbow that divides clients into a similar group and the rest (figure 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.style import INK, MUTED, figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ElbowCurve:
    """Similarities to the core user, most similar first, and the position of the elbow."""

    scores: Floats
    elbow: int

    @property
    def chord(self) -> Floats:
        """The straight line between the ends."""
        return np.linspace(self.scores[0], self.scores[-1], len(self.scores))

    def figure(self) -> go.Figure:
        rank = np.arange(len(self.scores))
        inside = rank <= self.elbow if self.elbow else np.zeros(len(rank), dtype=bool)
        traces = [
            go.Scatter(x=rank[inside], y=self.scores[inside], mode="markers", name="similar group"),
            go.Scatter(x=rank[~inside], y=self.scores[~inside], mode="markers", name="the rest"),
            go.Scatter(x=rank, y=self.chord, mode="lines", name="chord", line={"dash": "dot", "color": MUTED}),
        ]
        if self.elbow:
            mark = {"size": 12, "symbol": "x", "color": INK}
            at = {"x": [self.elbow], "y": [self.scores[self.elbow]]}
            traces.append(go.Scatter(**at, mode="markers", name="elbow", marker=mark))
        return figure(traces, "Similarity to the core user", "clients by similarity", "summed cosine")

    @property
    def said(self) -> str:
        """What is seen."""
        first, last = (f"{score:.3g}" for score in (self.scores[0], self.scores[-1]))
        course = f"Similarities of {len(self.scores)} clients go from {first} to {last}"
        if not self.elbow:
            return f"{course}; there is no elbow, and so no group."
        return f"{course}. The elbow is at rank {self.elbow}, at {self.scores[self.elbow]:.3g}: the group ends there."
