"""Why K-Means on clients' whole item tables fails (section 2.2, figure 5): nearly everybody lands in one cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray

from confed.analysis.maps import on_a_plane
from confed.analysis.style import figure, without_scale
from confed.server.clustering import kmeans

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class UserClusters:
    """Labels of all clients for every number of clusters tried, and the clients' places on a plane."""

    labels: Mapping[int, Ints]
    places: Floats

    def sizes(self, clusters: int) -> list[int]:
        """Members of every cluster, smallest first."""
        return sorted(np.bincount(self.labels[clusters], minlength=clusters).tolist())

    def figure(self, clusters: int) -> go.Figure:
        traces = []
        for label in np.unique(self.labels[clusters]):
            own = self.labels[clusters] == label
            x, y = self.places[own].T
            size = 11 if own.sum() < 10 else 6
            name = f"{own.sum()} client{'s' if own.sum() > 1 else ''}"
            said = {"text": f"in a cluster of {name}", "hoverinfo": "text"}
            traces.append(go.Scatter(x=x, y=y, mode="markers", name=name, marker={"size": size}, **said))
        return without_scale(figure(traces, f"K-Means of clients' item tables, k = {clusters} (t-SNE)", "", ""))

    def said(self, clusters: int) -> str:
        """What is seen."""
        *others, largest = self.sizes(clusters)
        have = "others have" if len(others) > 1 else "other has"
        share = f"{largest} of {len(self.places)} clients, {100 * largest / len(self.places):.1f} %"
        return f"The largest cluster has {share}; the {have} {', '.join(map(str, reversed(others)))}."


def user_clusters(tables: Floats, numbers: Sequence[int] = (2, 10), seed: int = 0) -> UserClusters:
    """K-Means on flattened tables (clients, items · d), 10 restarts.

    Distances are all that matters, and they survive a rotation: the clients are first written in as many coordinates
    as there are clients, from the matrix of their inner products.
    """
    centred = tables - tables.mean(axis=0)
    values, vectors = np.linalg.eigh((centred @ centred.T).astype(np.float64))
    points = vectors * np.sqrt(np.clip(values, 0.0, None))
    labels = {k: kmeans(torch.from_numpy(points), k, seed).numpy() for k in numbers}
    return UserClusters(labels, on_a_plane(points, seed))
