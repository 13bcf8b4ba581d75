"""The items of some categories on a plane (figure 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.maps import on_a_plane
from confed.analysis.style import figure

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ItemMap:
    """Items of the categories drawn, their places on the plane and their categories."""

    items: Ints
    places: Floats
    category: Ints

    def figure(self) -> go.Figure:
        traces = []
        for category in np.unique(self.category):
            own = self.category == category
            x, y = self.places[own].T
            name = f"category {category} ({own.sum()})"
            traces.append(go.Scatter(x=x, y=y, mode="markers", name=name, text=self.items[own].astype(str)))
        return figure(traces, "Items of the global mean, by category (t-SNE)", "", "")


_FEWEST = 4
"""Points below which a map shows nothing."""


def item_map(table: Floats, membership: Ints, categories: int = 8, seed: int = 0) -> ItemMap | None:
    """Rows of `table` that belong to `categories` categories drawn at random among those with two items or more.

    None where these have too few items for a map.
    """
    names, sizes = np.unique(membership, return_counts=True)
    worth = names[sizes > 1]
    chosen = np.random.default_rng(seed).permutation(worth)[:categories]
    items = np.flatnonzero(np.isin(membership, chosen))
    if len(items) < _FEWEST:
        return None
    return ItemMap(items, on_a_plane(table[items], seed), membership[items])
