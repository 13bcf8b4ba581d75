"""What a server needs to group things: K-Means, cosine similarities, the elbow of a curve."""

from __future__ import annotations

import warnings

import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import Tensor

_ROUNDING = 1e-12


def kmeans(points: Tensor, clusters: int, seed: int, restarts: int = 10) -> Tensor:
    """(points,) labels of the best of several k-means++ starts.

    Where fewer than `clusters` points are distinct, some labels stay unused. On one thread: with several, sums are
    taken in an order that changes from run to run.
    """
    model = KMeans(min(clusters, len(points)), n_init=restarts, random_state=seed % 2**32)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(points.numpy())
    return torch.from_numpy(labels).long()


def summed_cosines(tables: Tensor, core: Tensor) -> Tensor:
    """(clients,): Σ_i cos(core[i], tables[u, i]) over the rows of (clients, items, d); a zero row counts 0."""
    product = (tables.double() * core.double()).sum(dim=2)
    lengths = tables.double().norm(dim=2) * core.double().norm(dim=1)
    return torch.where(lengths > 0, product / lengths.clamp(min=torch.finfo(torch.float64).tiny), 0.0).sum(dim=1)


def elbow(scores: Tensor) -> int:
    """The position on a descending curve that lies farthest from the straight line between its ends.

    The first of several; 0 where the curve is that line, and then there is no elbow. The distance to a fixed line is
    the vertical deviation times a constant, so neither axis needs to be scaled.
    """
    last = len(scores) - 1
    if last < 1:
        return 0
    line = scores[0] + torch.arange(len(scores), dtype=scores.dtype) * ((scores[-1] - scores[0]) / last)
    distance = (scores - line).abs()
    # Rounding must neither make an elbow of a straight line nor decide between equals.
    rounding = _ROUNDING * scores.abs().max()
    farthest = distance.max()
    return int((distance >= farthest - rounding).nonzero()[0]) if farthest > rounding else 0
