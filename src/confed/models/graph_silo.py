"""FPPDM's local model: users and items as distributions that a graph encoder makes (Liu et al. 2023, Eq. 1 to 4).

    μ = S̃^L E W_1 … W_L,   σ = softplus(S̃^L E V_1 … V_L) + 1e-4,   S̃ = D̃^{-1/2} (A + 1) D̃^{-1/2}
    D(a, b) = |μ_a − μ_b|² + |σ_a − σ_b|²
    ℓ_R = − mean log [ exp(−D(u, i)) / Σ_{j ∈ {i} ∪ negatives} exp(−D(u, j)) ]

The encoder has no activation, so the graph is passed over once for both stacks, and the product of the weights is
applied to the rows of the batch only: all that the last pass makes, and where the gradient's first pass begins. E is
kept in blocks of 64 columns, each a parameter: a pass over the graph reads rows all over the table, and half a table
stays in the cache where a whole one does not.

Other scores than −D(u, i), of the same points (`score`): their dot product; −D + b_i with a number of every item; −κ D
with a learned κ; and the same of points that were brought to length 1.

The paper's sum in the denominator leaves the positive out, and then the loss has no lower bound: pushing negatives away
lowers it for ever (D-36; `denominator = "paper"`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from confed.data.negatives import draw_negatives
from confed.data.split import TrainingData
from confed.initial import glorot, initial, normal
from confed.models.distributions import points, squared_distances
from confed.models.graph import Graph, Passage
from confed.models.learner import Learner, batches_of
from confed.models.metric import metric_loss
from confed.models.preference import Batch, PreferenceSilo, Pull
from confed.models.silo import Shared
from confed.random import Stream
from confed.scoring import Scorer

BLOCK = 64
"""Columns of a block. With 128 columns and 28,000 nodes both ways over the graph take 34 ms in place of 74."""


class GraphSilo(PreferenceSilo):
    """Tables of users and items, smoothed over the domain's graph, and two stacks of weights."""

    def __init__(self, config: Any, pull: Pull, data: TrainingData, shared: Shared, seed: int, dtype: str) -> None:
        kind: torch.dtype = getattr(torch, dtype)
        learner = Learner(_start(config, data, shared, seed), config.learning_rate, kind)
        super().__init__(data, shared, seed, learner, pull, dim=config.dim, local_epochs=config.local_epochs)
        self.config = config
        self.graph = Graph(data, kind, loops=True)

    def steps(self) -> int:
        positives = len(self.data.positives.values)
        return max(-(-positives // int(self.config.batch_size)), 1)

    def epoch(self, number: int, epoch: int, batches: list[Batch]) -> float:
        users, items = self.rows(number, epoch)
        total = 0.0
        for batch, (some, listed) in zip(batches, batches_of(self.config.batch_size, users, items), strict=True):
            total += self.train_batch(batch, some, listed) * len(some)
        return total / len(users)

    def rows(self, number: int, epoch: int) -> tuple[Tensor, Tensor]:
        """Of every positive, in random order: its user, and the positive item with negatives behind it."""
        data = self.data
        time = (number - 1) * self.local_epochs + epoch
        drawn = draw_negatives(
            data, np.arange(data.users), self.config.train_negatives, Stream.of(self.seed, "negatives", time)
        )
        order = Stream.of(self.seed, "shuffle", time).order(len(drawn))
        items = np.concatenate([data.positives.values[:, None], drawn], axis=1)[order]
        return torch.from_numpy(data.positives.row_of[order]), torch.from_numpy(items)

    def train_batch(self, batch: Batch, users: Tensor, items: Tensor) -> float:
        """One step; ℓ_R before it."""
        distinct, user_of = torch.unique(users, return_inverse=True)
        listed, item_of = torch.unique(items, return_inverse=True)
        nodes = torch.cat([distinct, batch.unheard, listed + self.data.users])
        encoded = self.encode(nodes)
        of_users, unheard, of_items = torch.split(encoded, [len(distinct), len(batch.unheard), len(listed)])
        rating = self.rating(of_users, of_items, user_of, item_of, listed)
        self.step(rating + self.pulled(batch, distinct, of_users, unheard))
        return float(rating.detach())

    def rating(self, users: Tensor, items: Tensor, user_of: Tensor, item_of: Tensor, listed: Tensor) -> Tensor:
        """ℓ_R: of pair (b, j), user_of[b] among the points `users`, item_of[b, j] among `items`, which are `listed`."""
        whole = self.config.denominator == "all"
        if self.config.score == "distance":
            return metric_loss(users, items, user_of, item_of, whole=whole)
        user, item = users.index_select(0, user_of)[:, None], functional.embedding(item_of, items)
        scores = _adjusted(self._compared(user, item), listed[item_of], self.params)
        return (torch.logsumexp(scores if whole else scores[:, 1:], dim=1) - scores[:, 0]).mean()

    def _compared(self, users: Tensor, items: Tensor) -> Tensor:
        if self.config.score == "dot":
            return (users * items).sum(dim=-1)
        return -(users - items).square().sum(dim=-1)

    def encode(self, nodes: Tensor | None = None) -> Tensor:
        """Points of the distinct `nodes` asked for, or of all."""
        passage = self.graph.whole() if nodes is None else self.graph.around(nodes)
        rows = torch.cat([self._smoothed(block, passage) for block in range(len(_blocks(self.config.dim)))], dim=1)
        raw = rows @ self._stacked("deviation") if self.config.distributions else None
        found = points(rows @ self._stacked("mean"), raw)
        return functional.normalize(found, dim=1) if self.config.score == "normalised" else found

    def _smoothed(self, block: int, passage: Passage) -> Tensor:
        table = self.params[f"nodes_{block}"]
        smoothed: Tensor = _Power.apply(table, self.graph, self.config.layers, passage)  # type: ignore[no-untyped-call]
        return smoothed

    def _stacked(self, stack: str) -> Tensor:
        return reduce(torch.matmul, (self.params[f"{stack}_{layer}"] for layer in range(self.config.layers)))

    def user_points(self) -> Tensor:
        return self.encode()[: self.data.users]

    def item_scorer(self, users: Tensor) -> Scorer:
        items, everything = self.encode()[self.data.users :].detach(), torch.arange(self.data.items)
        # As they stand now: what is scored later must not see steps that are taken in between.
        beside: dict[str, Tensor] = {
            name: self.params[name].detach().clone() for name in ("bias", "scale") if name in self.params
        }

        def score(clients: Tensor) -> Tensor:
            rows = users.index_select(0, clients)
            found = rows @ items.T if self.config.score == "dot" else -squared_distances(rows, items)
            return _adjusted(found, everything, beside)

        return score


def _start(config: Any, data: TrainingData, shared: Shared, seed: int) -> dict[str, Tensor]:
    """With a common start the weights and the rows of shared people are the same in all companies.

    Distributions can be averaged only where coordinates mean the same. Nothing but a seed has to be agreed on for that,
    and everything else leaves it to ℓ_P to turn the spaces towards each other, round after round.
    """
    draw = normal(config.init_deviation)
    nodes = initial(seed, "nodes", (data.users + data.items, config.dim), draw)
    if config.common_start:
        people = initial(shared.seed, "people", (shared.everybody, config.dim), draw)
        nodes[shared.users] = people[shared.people]
    blocks = torch.split(nodes, _blocks(config.dim), dim=1)
    params = {f"nodes_{block}": table.contiguous() for block, table in enumerate(blocks)}
    for stack in ("mean", "deviation") if config.distributions else ("mean",):
        for layer in range(config.layers):
            of = shared.seed if config.common_start else seed
            params[f"{stack}_{layer}"] = initial(of, f"{stack}_{layer}", (config.dim, config.dim), glorot)
    return params | _beside(config.score, data.items)


def _adjusted(scores: Tensor, items: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """Scores of items, which are numbered, with what is learned beside the points."""
    if "bias" in params:
        return scores + params["bias"].index_select(0, items.flatten()).view(items.shape)
    return scores * params["scale"].exp() if "scale" in params else scores


def _beside(score: str, items: int) -> dict[str, Tensor]:
    """What a score has beside points, which stays in the company."""
    if score == "biased":
        return {"bias": torch.zeros(items, dtype=torch.float64)}
    return {"scale": torch.zeros((), dtype=torch.float64)} if score in ("scaled", "normalised") else {}


def _blocks(dim: int) -> list[int]:
    """The widths of the blocks; no block is wider than BLOCK."""
    return [min(BLOCK, dim - begin) for begin in range(0, dim, BLOCK)]


class _Power(torch.autograd.Function):
    """S̃^L · nodes at the end of the passage. S̃ is symmetric: the gradient passes through the same power."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, graph: Graph, layers: int, passage: Passage) -> Tensor:
        ctx.graph, ctx.layers, ctx.passage = graph, layers, passage
        # Detached: torch would note for every edge what a gradient of its own would need.
        return passage.there @ graph.power(nodes.detach(), layers - 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.graph.power(ctx.passage.back @ gradients[0], ctx.layers - 1), None, None, None
