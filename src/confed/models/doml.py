"""DOML: two domains' networks, and an orthogonal map between their users (Li and Tuzhilin 2021; decisions.md "doml").

    model_k(p, q)   = w · z_2 + c,   z_0 = [p ; q],  z_l = dropout(ReLU(W_l z_{l−1} + c_l)),  widths [2d, 64, d]
    s(u, i in A)    = (1 − α) · model_A(a_u, q_i) + α · model_B(X_AB a_u, q_i)            and likewise in B
    L               = BCE_A + BCE_B + mean_u (‖X_AB a_u − b_u‖² + ‖X_BA b_u − a_u‖²) + ρ Σ_X Σ|X Xᵀ − I|

X is a matrix with a bias. Each domain's BCE is the mean over every positive and q sampled negatives for each; the third
term is over people whom both domains have in training. A round is an epoch, in which rows of both domains and people
are shared out among the same number of steps of Adam.

Who has nothing in a domain's training data but something in the other's, a cold user, is scored there with the map of
that other vector; who has nothing in either, with the vector as it began.

Deviations from the published code (D-33): vectors are learned, where the paper has autoencoders of features, which this
data lacks. There ratings and map take turns, an epoch and a step of SGD; here all terms are in every step. The part
that maps items is left out: no item is in both domains.
"""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.data.domain_split import DomainSplit
from confed.initial import Layers, linear_layer, normal, orthogonal, zeros
from confed.models.base import PointwiseConfig
from confed.models.two_domains import Rows, TwoDomainModel, shared_out
from confed.random import keyed
from confed.scoring import Scorer

_HIDDEN = 64


class DOMLConfig(PointwiseConfig):
    dim: int = Field(default=128, ge=1)
    """Width of user and item vectors."""
    batch_size: int = Field(default=1024, ge=1)
    """Rows per step, of both domains together."""
    transfer: float = Field(default=0.03, ge=0, le=1)
    """α, the share of the other domain's network in a score."""
    orthogonality: float = Field(default=1e-6, ge=0)
    """ρ, the weight of how far the maps are from orthogonal ones."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the networks' hidden values that a step does not see."""


class DOMLModel(TwoDomainModel):
    """By domain users, items, a network, and the map to the other domain."""

    def __init__(self, config: DOMLConfig, cut: DomainSplit, seed: int, dtype: str) -> None:
        super().__init__("doml", cut, seed, dtype)
        self.config = config
        self.begin(self._layers(), config.learning_rate)

    def _layers(self) -> Layers:
        dim = self.config.dim
        begin = normal(self.config.init_deviation)
        layers: Layers = {}
        for name, data in self.data.items():
            layers |= {f"{name}.users": ((data.users, dim), begin), f"{name}.items": ((data.items, dim), begin)}
            layers |= linear_layer(f"{name}.first", 2 * dim, _HIDDEN) | linear_layer(f"{name}.second", _HIDDEN, dim)
            layers |= linear_layer(f"{name}.output", dim, 1)
            layers |= {f"{name}.map": ((dim, dim), orthogonal), f"{name}.map_bias": ((dim,), zeros)}
        return layers

    def train(self, number: int) -> float:
        """The mean loss of all rows, each before the step it takes part in; the other terms are not in it."""
        rows = {name: self.labelled(name, self.config.train_negatives, number) for name in self.names}
        count = sum(len(labels) for *_, labels in rows.values())
        steps = max(math.ceil(count / self.config.batch_size), 1)
        pairs = self.known_to_both
        order = torch.randperm(len(pairs), generator=keyed(self.seed, "people", number))
        total = 0.0
        for step in range(steps):
            share = {name: shared_out(of, step, steps) for name, of in rows.items()}
            (people,) = shared_out((order,), step, steps)
            total += self._step(share, pairs[people], keyed(self.seed, "dropout", number, step))
        return total / count

    def _step(self, rows: dict[str, Rows], pairs: Tensor, draws: torch.Generator) -> float:
        """One step of Adam; the sum of the rows' losses before it."""
        found = {name: self.row_losses(name, of, draws) for name, of in rows.items()}
        loss = self.aligned(pairs) + self.config.orthogonality * self.bent()
        for losses in found.values():
            loss = loss + (losses.mean() if len(losses) else 0.0)
        self.learner.step(loss)
        return sum(float(losses.detach().sum()) for losses in found.values())

    def row_losses(self, name: str, rows: Rows, draws: torch.Generator | None = None) -> Tensor:
        users, items, labels = rows
        of_users = self.params[f"{name}.users"].index_select(0, users)
        of_items = self.params[f"{name}.items"].index_select(0, items)
        logits = self.logits(name, of_users, of_items, draws)
        return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")

    def aligned(self, pairs: Tensor) -> Tensor:
        """How far people's vectors are from where the maps take those of the other domain; the mean over people."""
        if not len(pairs):
            return self.params[f"{self.names[0]}.map"].new_zeros(())
        vectors = [self.params[f"{name}.users"].index_select(0, pairs[:, k]) for k, name in enumerate(self.names)]
        away = [self.mapped(name, vectors[k]) - vectors[1 - k] for k, name in enumerate(self.names)]
        return sum((gap.square().sum(dim=1).mean() for gap in away), start=vectors[0].new_zeros(()))

    def bent(self) -> Tensor:
        """Σ|X Xᵀ − I| of both maps."""
        maps = torch.stack([self.params[f"{name}.map"] for name in self.names])
        return (maps @ maps.mT - torch.eye(maps.shape[1], dtype=maps.dtype)).abs().sum()

    def mapped(self, name: str, vectors: Tensor) -> Tensor:
        """Users of domain `name` in the other one's space."""
        return functional.linear(vectors, self.params[f"{name}.map"], self.params[f"{name}.map_bias"])

    def logits(self, name: str, users: Tensor, items: Tensor, draws: torch.Generator | None = None) -> Tensor:
        """Scores in domain `name` of vectors (…, d); the axes in front of d broadcast."""
        share, other = self.config.transfer, self.other(name)
        there = self._network(other, self.mapped(name, users), items, draws)
        return (1.0 - share) * self._network(name, users, items, draws) + share * there

    def _network(self, name: str, users: Tensor, items: Tensor, draws: torch.Generator | None) -> Tensor:
        """W_0 [p ; q] is W_p p + W_q q: scoring all pairs multiplies each side once."""
        params = self.params
        user_side, item_side = torch.split(params[f"{name}.first"], self.config.dim, dim=1)
        hidden = functional.linear(users, user_side, params[f"{name}.first_bias"]) + items @ item_side.T
        hidden = self.kept(torch.relu(hidden), self.config.dropout, draws)
        hidden = functional.linear(hidden, params[f"{name}.second"], params[f"{name}.second_bias"])
        hidden = self.kept(torch.relu(hidden), self.config.dropout, draws)
        return functional.linear(hidden, params[f"{name}.output"], params[f"{name}.output_bias"])[..., 0]

    @torch.no_grad()
    def vectors(self, name: str) -> Tensor:
        """(users, d) of a domain; of cold users those of the other domain, mapped."""
        other = self.other(name)
        here, there = self.cold(name)
        found = self.params[f"{name}.users"].detach().clone()
        found[here] = self.mapped(other, self.params[f"{other}.users"][there])
        return found

    def scorer_of(self, domain: str) -> Scorer:
        users, items = self.vectors(domain), self.params[f"{domain}.items"]

        @torch.no_grad()
        def score(clients: Tensor) -> Tensor:
            return self.logits(domain, users.index_select(0, clients)[:, None], items)

        return score

    def values_of(self, domain: str) -> int:
        return max(self.config.dim, _HIDDEN) * self.data[domain].items
