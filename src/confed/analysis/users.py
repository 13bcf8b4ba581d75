"""Why K-Means on clients' whole item tables fails (section 2.2, figure 5): nearly everybody lands in one cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray

from confed.analysis.maps import on_a_plane
from confed.analysis.style import figure
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
            traces.append(go.Scatter(x=x, y=y, mode="markers", name=f"{own.sum()} clients", marker={"size": size}))
        sizes = " / ".join(map(str, self.sizes(clusters)))
        return figure(traces, f"K-Means of clients' item tables, k = {clusters}: {sizes} (t-SNE)", "", "")


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
