"""The graph of users and items, and how vectors are smoothed over it.

    Â = D^{-1/2} A D^{-1/2},  A = [[0, R], [Rᵀ, 0]]  of training edges, with a loop at every node or without

Â is symmetric, so whatever is a polynomial in Â is its own transpose: gradients pass through it as values do, and no
autograd is needed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from confed.data.split import TrainingData


class Graph:
    """Â in compressed rows. Nodes are the users, then the items."""

    def __init__(self, data: TrainingData, dtype: torch.dtype, *, loops: bool = False) -> None:
        edges = data.positives.unique()
        users, items = edges.row_of, edges.values + data.users
        nodes = data.users + data.items
        own = np.arange(nodes if loops else 0)
        source, target = np.concatenate([users, items, own]), np.concatenate([items, users, own])
        order = np.lexsort((target, source))
        source, target = source[order], target[order]
        degree = np.bincount(source, minlength=nodes)
        # Half the bytes of int64 to read for every edge: two thirds of the time on small graphs.
        self.offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(degree)]).astype(np.int32))
        self.neighbours = torch.from_numpy(target.astype(np.int32))
        self.weights = torch.from_numpy((degree[source] * degree[target]) ** -0.5).to(dtype)

    def smooth(self, nodes: Tensor) -> Tensor:
        """Â · nodes: for each node the weighted sum of its neighbours' rows."""
        return functional.embedding_bag(
            self.neighbours,
            nodes,
            self.offsets,
            mode="sum",
            per_sample_weights=self.weights,
            include_last_offset=True,
        )

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
