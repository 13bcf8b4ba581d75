"""LightGCN: embeddings smoothed over the user-item graph, ranked by BPR (He et al. 2020; decisions.md "lightgcn").

    Â = D^{-1/2} A D^{-1/2},  A = [[0, R], [Rᵀ, 0]]        the graph of training edges, no self loops
    E = (E⁰ + ÂE⁰ + … + Â^L E⁰) / (L + 1),  s_ui = E_u · E_i
    minimise  mean softplus(s_uj − s_ui) + λ/(2B) Σ (|e⁰_u|² + |e⁰_i|² + |e⁰_j|²)

over triples (user u, positive i, negative j), with Adam. As in the official code an epoch is as many triples
as there are training interactions, with users drawn uniformly over users, not over interactions, and the
regulariser acts on layer-0 rows. Deviations: width 32, as Fed3CR compares with it (official: 64); repeated
pairs are one edge; negatives come from outside `TrainingData.excluded`, so the protocol decides whether they
avoid the held-out items, where the official sampler avoids training items only, which is `strict`.

A user without edges, a cold one, is scored with the mean of all others' E_u.

E is linear in E⁰ and Â is symmetric, so the gradient of E⁰ is that of E propagated in the same way: no
autograd.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.config import MethodConfig
from confed.data.split import TrainingData
from confed.initial import initial, normal
from confed.models.base import EpochModel
from confed.models.graph import Graph
from confed.models.learner import batches_of
from confed.random import Stream
from confed.scoring import Scorer, dot_scorer


class LightGCNConfig(MethodConfig):
    dim: int = Field(default=32, ge=1)
    """Width of user and item vectors."""
    layers: int = Field(default=3, ge=0, le=100)
    """L, how far embeddings are propagated."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size."""
    regularisation: float = Field(default=1e-4, ge=0)
    """λ, on the layer-0 rows of a batch."""
    batch_size: int = Field(default=2048, ge=1)
    """Triples per step."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors."""


class LightGCNModel(EpochModel):
    """One table, E⁰, of all users and items."""

    def __init__(self, config: LightGCNConfig, data: TrainingData, seed: int, dtype: str) -> None:
        shape = (data.users + data.items, config.dim)
        params = {"nodes": initial(seed, "nodes", shape, normal(config.init_deviation))}
        super().__init__(data, seed, dtype, params, config.learning_rate)
        self.config = config
        self.graph = Graph(data, self.dtype)

    def epoch(self, number: int) -> float:
        triples = self.triples(number)
        loss = 0.0
        for batch in batches_of(self.config.batch_size, *triples):
            loss += self.step(*batch) * len(batch[0])
        return loss / len(triples[0])

    def triples(self, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """Node numbers of users, positives and negatives: as many as there are training interactions."""
        data = self.data
        draw = np.arange(len(data.positives.values))
        trained = np.flatnonzero(data.positives.lengths)
        users = trained[Stream.of(self.seed, "users", number).integers(draw, 0, len(trained))]
        place = Stream.of(self.seed, "positives", number).integers(draw, 0, data.positives.lengths[users])
        positives = data.positives.values[data.positives.offsets[users] + place]
        pool = data.items - data.excluded.lengths[users]
        rank = Stream.of(self.seed, "negatives", number).integers(draw, 0, pool)
        negatives = data.excluded.outside(users, rank)
        return (
            torch.from_numpy(users),
            torch.from_numpy(positives + data.users),
            torch.from_numpy(negatives + data.users),
        )

    def step(self, users: Tensor, positives: Tensor, negatives: Tensor) -> float:
        """One Adam step; the loss before it."""
        table = self.params["nodes"]
        loss, table.grad = self.loss_and_gradient(users, positives, negatives)
        self.adam.step()
        return loss

    def loss_and_gradient(self, users: Tensor, positives: Tensor, negatives: Tensor) -> tuple[float, Tensor]:
        table = self.params["nodes"]
        chosen = torch.cat([users, positives, negatives])
        final = self.graph.propagate(table, self.config.layers).index_select(0, chosen)
        user, positive, negative = final.chunk(3)
        margin = (user * (positive - negative)).sum(dim=1)
        slope = (-torch.sigmoid(-margin) / len(margin))[:, None]
        of_final = torch.cat([slope * (positive - negative), slope * user, -slope * user])
        gradient = torch.zeros_like(table).index_add_(0, chosen, of_final)
        gradient = self.graph.propagate(gradient, self.config.layers)
        first = table.index_select(0, chosen)
        decay = self.config.regularisation / len(margin)
        gradient.index_add_(0, chosen, first, alpha=decay)
        loss = functional.softplus(-margin).mean() + 0.5 * decay * first.square().sum()
        return float(loss), gradient

    def scorer(self) -> Scorer:
        nodes = self._smoothed()
        return dot_scorer(self.for_scoring(nodes[: self.data.users]), nodes[self.data.users :])

    def item_vectors(self) -> Tensor:
        return self._smoothed()[self.data.users :]

    def _smoothed(self) -> Tensor:
        return self.graph.propagate(self.params["nodes"], self.config.layers)
