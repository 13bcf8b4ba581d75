"""The graph of users and items, and how vectors are smoothed over it.

    Â = D^{-1/2} A D^{-1/2},  A = [[0, R], [Rᵀ, 0]]  of training edges, with a loop at every node or without

Â is symmetric, so whatever is a polynomial in Â is its own transpose: gradients pass through it as values do, and no
autograd is needed. Who wants a few nodes only needs the last pass for these alone, and the first pass of gradients from
these alone (`Graph.around`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from confed.data.split import TrainingData
from confed.ragged import Ints, Ragged


@dataclass(frozen=True)
class Edges:
    """A sparse matrix in compressed rows."""

    offsets: Tensor
    neighbours: Tensor
    weights: Tensor

    def __matmul__(self, nodes: Tensor) -> Tensor:
        """Of every row the weighted sum of its neighbours among `nodes`."""
        return functional.embedding_bag(
            self.neighbours,
            nodes,
            self.offsets,
            mode="sum",
            per_sample_weights=self.weights,
            include_last_offset=True,
        )

    def rows(self, chosen: Tensor) -> Edges:
        """The matrix of these rows only."""
        begins = self.offsets.index_select(0, chosen)
        degree = self.offsets.index_select(0, chosen + 1) - begins
        offsets = _offsets(degree)
        edges = torch.arange(int(offsets[-1])) + torch.repeat_interleave(begins - offsets[:-1], degree)
        return Edges(offsets, self.neighbours.index_select(0, edges), self.weights.index_select(0, edges))

    def columns(self, chosen: Tensor) -> Edges:
        """The matrix of these columns only, which are distinct; every row stays."""
        position = self.neighbours.new_full((len(self.offsets) - 1,), -1)
        position[chosen] = torch.arange(len(chosen), dtype=position.dtype)
        places = position.index_select(0, self.neighbours)
        kept = places >= 0
        before = functional.pad(torch.cumsum(kept, 0, dtype=torch.int32), (1, 0))
        edges = torch.nonzero(kept)[:, 0]
        offsets = before.index_select(0, self.offsets)
        return Edges(offsets, places.index_select(0, edges), self.weights.index_select(0, edges))


@dataclass(frozen=True)
class Passage:
    """The way to some nodes from all, and, transposed, the way back."""

    there: Edges
    back: Edges


def averages(rows: Ragged, columns: int, dtype: torch.dtype) -> Passage:
    """Of every row the mean of those it lists, of `columns` many; 0 of a row that lists none."""
    weights = (1.0 / np.maximum(rows.lengths, 1)).repeat(rows.lengths)
    order = np.argsort(rows.values, kind="stable")
    degree = np.bincount(rows.values, minlength=columns)
    there = _edges(rows.lengths, rows.values, weights, dtype)
    return Passage(there, _edges(degree, rows.row_of[order], weights[order], dtype))


def _edges(degree: Ints, neighbours: Ints, weights: NDArray[np.float64], dtype: torch.dtype) -> Edges:
    # Half the bytes of int64 to read for every edge: two thirds of the time on small graphs.
    offsets = _offsets(torch.from_numpy(degree))
    return Edges(offsets, torch.from_numpy(neighbours.astype(np.int32)), torch.from_numpy(weights).to(dtype))


def passed(nodes: Tensor, passage: Passage) -> Tensor:
    """`passage.there @ nodes`, whose gradient takes the way back."""
    found: Tensor = _Passed.apply(nodes, passage)  # type: ignore[no-untyped-call]
    return found


class _Passed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, nodes: Tensor, passage: Passage) -> Tensor:
        ctx.passage = passage
        # Detached: torch would note for every edge what a gradient of its own would need.
        return passage.there @ nodes.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.passage.back @ gradients[0].contiguous(), None


class Graph:
    """Â in compressed rows. Nodes are the users, then the items."""

    def __init__(self, data: TrainingData, dtype: torch.dtype, *, loops: bool = False) -> None:
        pairs = data.positives.unique()
        users, items = pairs.row_of, pairs.values + data.users
        nodes = data.users + data.items
        own = np.arange(nodes if loops else 0)
        source, target = np.concatenate([users, items, own]), np.concatenate([items, users, own])
        order = np.lexsort((target, source))
        source, target = source[order], target[order]
        degree = np.bincount(source, minlength=nodes)
        self.edges = _edges(degree, target, (degree[source] * degree[target]) ** -0.5, dtype)

    def whole(self) -> Passage:
        return Passage(self.edges, self.edges)

    def around(self, nodes: Tensor) -> Passage:
        """What one pass needs that ends, or begins, at these distinct nodes."""
        return Passage(self.edges.rows(nodes), self.edges.columns(nodes))

    def smooth(self, nodes: Tensor) -> Tensor:
        """Â · nodes: for each node the weighted sum of its neighbours' rows."""
        return self.edges @ nodes

    def power(self, nodes: Tensor, layers: int) -> Tensor:
        """Â^L · nodes."""
        for _ in range(layers):
            nodes = self.smooth(nodes)
        return nodes

    def propagate(self, nodes: Tensor, layers: int) -> Tensor:
        """Mean of nodes, Â·nodes, …, Â^L·nodes."""
        total = nodes.clone()
        for _ in range(layers):
            nodes = self.smooth(nodes)
            total += nodes
        return total / (layers + 1)


def _offsets(degree: Tensor) -> Tensor:
    """Where rows of these lengths begin, and where the last ends."""
    return functional.pad(torch.cumsum(degree, 0, dtype=torch.int32), (1, 0))
