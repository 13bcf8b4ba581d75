"""Compactness co-clustering: which users of a batch belong together (Liu et al., Eq. 8 to 11; decisions.md "fppdm++").

    s_ij = softmax_{j≠i}( −(D_ij + η |f_i − f_j|²) / ε )          similarity, with entropy                    (Eq. 8)
    F    = the M eigenvectors of L = diag(S̄1) − S̄ with the smallest eigenvalues, S̄ = (S + Sᵀ)/2              (Eq. 9)
    ζ_ij = softmax_j( −|f_i − z_j|² / ε ),  z_j = Σ_i ζ_ij f_i / Σ_i ζ_ij        entropy K-Means             (Eq. 10)
    c_j  = Σ_i ζ_ij x_i / Σ_i ζ_ij                                 the clusters' distributions, as points
    ℓ_C  = mean_i Σ_j ζ_ij D(x_i, c_j)                                                                       (Eq. 11)

S and F alternate, beginning with F = 0; all but the last line is computed without gradient, and the centres are
constants in it (D-39). As decided: the diagonal of S is masked, D is divided by its mean, L is
symmetrised (D-40); the second F comes from two steps of orthogonal iteration that start at the first.

Deviation: K-Means sees the rows of F scaled to a mean squared length of 1. With FᵀF = I a column has variance 1/N, and
entropy K-Means with distances d²/ε keeps its centres apart only where ε is below twice the largest variance (it is
deterministic annealing, and that is its first phase transition): for N = 256 below 0.008. With the printed ε = 0.05 the
centres fall into one point, ζ is uniform and ℓ_C pulls every user to the mean of the batch. (All centres, where users
form groups; somebody who is similar to nobody has an eigenvector to himself, and keeps a centre.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confed.models.distributions import squared_distances
from confed.random import Stream


@dataclass(frozen=True)
class CoClustering:
    """The settings, by their names in the paper."""

    clusters: int = 15
    """M."""
    entropy: float = 0.05
    """ε, of the similarities and of the assignments."""
    coupling: float = 0.1
    """η, how much the indicators of two users count in their similarity."""
    alternations: int = 2
    """How often similarity and indicator are computed in turn."""
    iterations: int = 10
    """Of entropy K-Means."""

    def assign(self, users: Tensor, stream: Stream, slot: int) -> Tensor:
        """(n, M) soft assignment ζ of the points `users`; rows sum to 1. Of fewer users than M, so many clusters."""
        clusters = min(self.clusters, len(users))
        if clusters == 1:
            return users.new_ones(len(users), 1)
        indicator = self.indicators(squared_distances(users, users), clusters)
        rows = indicator * (len(users) / clusters) ** 0.5
        return entropy_kmeans(rows, clusters, self.entropy, self.iterations, stream, slot)

    def indicators(self, distances: Tensor, clusters: int) -> Tensor:
        """F, after the alternations."""
        scale = distances.mean()
        relative = distances / scale if scale > 0 else distances
        similar = similarity(relative, self.entropy)
        indicator = smallest_eigenvectors(laplacian(similar), clusters)
        for _ in range(self.alternations - 1):
            coupled = relative + self.coupling * squared_distances(indicator, indicator)
            indicator = iterated(laplacian(similarity(coupled, self.entropy)), indicator)
        return indicator

    def loss(self, users: Tensor, stream: Stream, slot: int) -> Tensor:
        """ℓ_C as a mean over users."""
        with torch.no_grad():
            assignment = self.assign(users, stream, slot)
            centres = cluster_points(users, assignment)
        return (assignment * squared_distances(users, centres)).sum(dim=1).mean()


def similarity(distances: Tensor, entropy: float) -> Tensor:
    """(n, n): each row the softmax of −distance/ε over the others; nobody is similar to himself."""
    own = torch.eye(len(distances), dtype=torch.bool)
    return torch.softmax((-distances / entropy).masked_fill(own, -torch.inf), dim=1)


def laplacian(similar: Tensor) -> Tensor:
    """diag(S̄1) − S̄ of the symmetrised similarities: symmetric, and never with a negative eigenvalue."""
    both = (similar + similar.T) / 2
    return torch.diag(both.sum(dim=1)) - both


def smallest_eigenvectors(matrix: Tensor, count: int) -> Tensor:
    """(n, count) orthonormal columns: those with the smallest eigenvalues, ascending."""
    vectors: Tensor = torch.linalg.eigh(matrix).eigenvectors
    return vectors[:, :count]


def iterated(matrix: Tensor, start: Tensor, steps: int = 2) -> Tensor:
    """Orthogonal iteration from `start` towards the smallest eigenvectors: multiply by b·1 − L, make orthonormal.

    No eigenvalue of a Laplacian is above b, twice its largest degree, so that the smallest become the largest.
    """
    bound = 2 * matrix.diagonal().max()
    columns = start
    for _ in range(steps):
        columns, _ = torch.linalg.qr(bound * columns - matrix @ columns)
    return columns


def entropy_kmeans(rows: Tensor, clusters: int, entropy: float, iterations: int, stream: Stream, slot: int) -> Tensor:
    """(n, clusters): soft assignments, from a k-means++ start."""
    centres = _spread_start(rows, clusters, stream, slot)
    assignment = _assigned(rows, centres, entropy)
    for _ in range(iterations - 1):
        centres = cluster_points(rows, assignment)
        assignment = _assigned(rows, centres, entropy)
    return assignment


def _assigned(rows: Tensor, centres: Tensor, entropy: float) -> Tensor:
    return torch.softmax(-squared_distances(rows, centres) / entropy, dim=1)


def cluster_points(rows: Tensor, assignment: Tensor) -> Tensor:
    """(clusters, d): the mean of all rows, weighted by how far they belong; nobody's cluster is the origin."""
    weight = assignment.sum(dim=0)[:, None]
    tiny = torch.finfo(rows.dtype).tiny
    return assignment.T @ rows / weight.clamp_min(tiny)


def _spread_start(rows: Tensor, clusters: int, stream: Stream, slot: int) -> Tensor:
    """k-means++: each further centre is a row drawn with the square of its distance to the nearest one so far."""
    draws = torch.from_numpy(stream.bits(slot, range(clusters)).astype("float64") / 2.0**64)
    chosen = [int(draws[0] * len(rows))]
    nearest = squared_distances(rows, rows[chosen[:1]])[:, 0].double()
    for draw in draws[1:]:
        steps = nearest.cumsum(0)
        total = float(steps[-1])
        # All rows are centres already: any will do, and the two become one.
        place = int(torch.searchsorted(steps, draw * total)) if total > 0 else 0
        chosen.append(min(place, len(rows) - 1))
        nearest = torch.minimum(nearest, squared_distances(rows, rows[chosen[-1:]])[:, 0].double())
    return rows[chosen]
