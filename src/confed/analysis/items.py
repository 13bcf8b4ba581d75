"""The items of some categories on a plane (figure 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from confed.analysis.maps import on_a_plane
from confed.analysis.style import figure, without_scale

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
            said = [f"item {item}, category {category}" for item in self.items[own]]
            name = f"category {category} ({own.sum()})"
            traces.append(go.Scatter(x=x, y=y, mode="markers", name=name, text=said, hoverinfo="text"))
        return without_scale(figure(traces, "Items of the mean table, by category (t-SNE)", "", ""))

    @property
    def neighbours_alike(self) -> float:
        """The share of items whose nearest neighbour on the plane is of their own category."""
        nearest = NearestNeighbors(n_neighbors=1).fit(self.places).kneighbors(return_distance=False)[:, 0]
        return float((self.category == self.category[nearest]).mean())

    @property
    def by_chance(self) -> float:
        """The same to expect of items that are strewn by lot."""
        sizes, items = np.unique(self.category, return_counts=True)[1], len(self.items)
        return float((sizes * (sizes - 1)).sum() / (items * (items - 1)))

    @property
    def said(self) -> str:
        """What is seen."""
        alike, chance = (f"{100 * share:.0f} %" for share in (self.neighbours_alike, self.by_chance))
        return (
            f"{len(self.items)} items of {len(np.unique(self.category))} categories: {alike} lie next to one of their "
            f"own category, where chance alone would give {chance}."
        )


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
