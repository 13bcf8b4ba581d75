"""CDRIB: two domains' variational graph encoders with a bottleneck between (Cao et al. 2022; decisions.md "cdrib").

In each domain, with means over a user's items and over an item's users in place of S and Sᵀ:

    h_0 = table;   h_l = ReLU(A_l [φ(S φ(Sᵀ h_{l−1} V_l) W_l) ; h_{l−1}] + a_l)       users; items likewise, φ is leaky
    the last layer has two heads of that kind, without ReLU: μ, and ρ with σ = exp(0.1 + 0.9 softplus(min(ρ, 0.4)))
    z = μ + σ ⊙ ε in training, μ in scoring;   x = [h_1 ; … ; z];   s_ui = x_u · x_i
    L = Σ_domains BCE⁺ + BCE⁻ + β KL_users + KL_items,  and with v another person, D a network of both vectors
      + mean_u [0.3 − σ(D(x_u, y_u)) + σ(D(x_u, y_v))]₊ + [0.3 − σ(D(x_u, y_u)) + σ(D(x_v, y_u))]₊

The bottleneck: who has something to train on in both domains enters either domain's BCE, of a positive and a sampled
negative each, with the *other* domain's vector, so that what the domains have in common must explain the items of both.
Others enter with their own. KL is the mean over nodes of the divergence from the normal with deviation σ(ρ = 1) = 2.51:
every σ lies between 1.105 and that.

A round is an epoch, in which rows of both domains are shared out among the same steps. People are scored as they were
trained, with the other domain's vector where they have one; who is cold in a domain has nothing but that. That is what
CDRIB is made for: it says nothing of users who are known to the domain, and `known_by = both` scores these with the
mean of both vectors.

Deviations from the published code: no decay of the learning rate; v is one of those known to both domains, there any
user of the other; one round is reported for both domains, there the best of each.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.data.domain_split import DomainSplit
from confed.initial import Layers, glorot, linear_layer, normal, zeros
from confed.models.base import PointwiseConfig
from confed.models.graph import Passage, averages, passed
from confed.models.two_domains import Rows, TwoDomainModel, in_steps
from confed.random import keyed, standard_normal
from confed.scoring import Scorer, dot_scorer

SIDES = ("users", "items")
_CONTRASTED = 64
"""People of a step whose vectors are told apart."""
_MARGIN = 0.3


class CDRIBConfig(PointwiseConfig):
    dim: int = Field(default=128, ge=1)
    """Width of tables and layers; a vector has all layers beside each other."""
    layers: int = Field(default=3, ge=1, le=10)
    """Of the encoders, the last of them with noise."""
    init_deviation: float = Field(default=1.0, gt=0)
    """Standard deviation of the initial vectors; torch's own is 1."""
    batch_size: int = Field(default=1024, ge=1)
    """Positives per step, of both domains together; every step passes over both graphs."""
    train_negatives: int = Field(default=1, ge=1)
    """Sampled negatives per positive, redrawn every epoch."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share of a layer's input that a step does not see."""
    bottleneck: float = Field(default=1.5, ge=0)
    """β, the weight of the users' divergence."""
    weight_decay: float = Field(default=5e-4, ge=0)
    """L2 pull of all parameters towards 0, added to the gradient."""
    known_by: Literal["other", "both"] = "other"
    """Who is known to both domains is scored with the other one's vector, as in training, or with the mean of both."""


class CDRIBModel(TwoDomainModel):
    """By domain tables and encoders of users and items; the network that tells people apart."""

    def __init__(self, config: CDRIBConfig, cut: DomainSplit, seed: int, dtype: str) -> None:
        super().__init__("cdrib", cut, seed, dtype)
        self.config = config
        self.means = {name: self._means(name) for name in self.names}
        """By domain and side, the mean over a node's neighbours."""
        self.begin(self._layers(), config.learning_rate, config.weight_decay)

    def _means(self, name: str) -> dict[str, Passage]:
        data = self.data[name]
        rows = data.positives.unique()
        columns = rows.transposed(data.items)
        return {
            "users": averages(rows, data.items, self.dtype),
            "items": averages(columns, data.users, self.dtype),
        }

    def _layers(self) -> Layers:
        dim, last = self.config.dim, self.config.layers - 1
        layers: Layers = {}
        for name, data in self.data.items():
            for side, count in zip(SIDES, (data.users, data.items), strict=True):
                layers[f"{name}.{side}"] = (count, dim), normal(self.config.init_deviation)
                for layer in range(self.config.layers):
                    at = f"{name}.{side}.{layer}"
                    layers |= _pass(f"{at}.out", dim)
                    for head in ("", "_raw") if layer == last else ("",):
                        layers |= _pass(f"{at}.back{head}", dim)
                        layers |= linear_layer(f"{at}.union{head}", 2 * dim, dim)
        wide = 2 * self.config.layers * dim
        return (
            layers
            | linear_layer("judge.0", wide, 128)
            | linear_layer("judge.1", 128, 100)
            | linear_layer("judge.2", 100, 1)
        )

    def train(self, number: int) -> float:
        """The mean loss of all rows, each before the step it takes part in; the other terms are not in it."""
        rows = {name: self.labelled(name, self.config.train_negatives, number) for name in self.names}
        count = sum(len(labels) for *_, labels in rows.values())
        total = 0.0
        for step, share in enumerate(in_steps(rows, self.config.batch_size * (1 + self.config.train_negatives))):
            found, others = self.losses(share, keyed(self.seed, "step", number, step))
            self.learner.step(others + sum(self._weighted(losses) for losses in found if len(losses)))
            total += sum(float(losses.detach().sum()) for losses in found)
        return total / count

    def _weighted(self, losses: Tensor) -> Tensor:
        """The mean of the positives' and that of each of their negatives, added up."""
        return (1 + self.config.train_negatives) * losses.mean()

    def losses(self, rows: dict[str, Rows], draws: torch.Generator | None) -> tuple[list[Tensor], Tensor]:
        """Of each domain the losses of its rows; and the sum of all other terms."""
        vectors, divergence = {}, self.params["judge.2"].new_zeros(())
        for name in self.names:
            vectors[name], found = self.encode(name, draws)
            divergence = divergence + found
        pairs = self.known_to_both
        exchanged = self.exchanged(vectors, pairs)
        losses = []
        for name, (users, items, labels) in rows.items():
            of_items = vectors[name]["items"].index_select(0, items)
            logits = (exchanged[name].index_select(0, users) * of_items).sum(dim=1)
            losses.append(functional.binary_cross_entropy_with_logits(logits, labels, reduction="none"))
        first, second = (vectors[name]["users"].index_select(0, pairs[:, k]) for k, name in enumerate(self.names))
        return losses, divergence + self.contrast(first, second, draws)

    def exchanged(self, vectors: dict[str, dict[str, Tensor]], pairs: Tensor) -> dict[str, Tensor]:
        """By domain, all users' vectors; of people known to both those of the other domain."""
        first, second = (vectors[name]["users"] for name in self.names)
        return {
            self.names[0]: first.index_copy(0, pairs[:, 0], second.index_select(0, pairs[:, 1])),
            self.names[1]: second.index_copy(0, pairs[:, 1], first.index_select(0, pairs[:, 0])),
        }

    def encode(self, name: str, draws: torch.Generator | None = None) -> tuple[dict[str, Tensor], Tensor]:
        """Vectors of a domain's users and items, and the divergence; without `draws`, as they are scored."""
        found, divergence = {}, self.params["judge.2"].new_zeros(())
        nodes = {side: self.params[f"{name}.{side}"] for side in SIDES}
        seen: dict[str, list[Tensor]] = {side: [] for side in SIDES}
        for layer in range(self.config.layers - 1):
            nodes = {side: self.kept(of, self.config.dropout, draws) for side, of in nodes.items()}
            nodes = {side: torch.relu(self._heads(name, side, layer, of)[0]) for side, of in nodes.items()}
            for side, of in nodes.items():
                seen[side].append(of)
        for side, weight in zip(SIDES, (self.config.bottleneck, 1.0), strict=True):
            mean, raw = self._heads(
                name, side, self.config.layers - 1, self.kept(nodes[side], self.config.dropout, draws)
            )
            spread = deviation(raw)
            drawn = mean if draws is None else mean + spread * standard_normal(mean, draws)
            found[side] = torch.cat([*seen[side], drawn], dim=1)
            divergence = divergence + weight * divergence_of(mean, spread)
        return found, divergence

    def _heads(self, name: str, side: str, layer: int, nodes: Tensor) -> list[Tensor]:
        """What a layer makes of the nodes of one side, before its ReLU: over their neighbours and back."""
        at, other = f"{name}.{side}.{layer}", SIDES[1 - SIDES.index(side)]
        there = self._passed(f"{at}.out", nodes, self.means[name][other])
        found = []
        for head in ("", "_raw") if layer == self.config.layers - 1 else ("",):
            back = self._passed(f"{at}.back{head}", there, self.means[name][side])
            found.append(self.linear(f"{at}.union{head}", torch.cat([back, nodes], dim=1)))
        return found

    def _passed(self, weights: str, nodes: Tensor, passage: Passage) -> Tensor:
        smoothed = passed(nodes @ self.params[weights], passage) + self.params[f"{weights}_bias"]
        return functional.leaky_relu(smoothed, 0.1)

    def contrast(self, first: Tensor, second: Tensor, draws: torch.Generator | None) -> Tensor:
        """Whether a person's two vectors can be told from those of two people; over some of the people."""
        if draws is None or len(first) < 2:
            return first.new_zeros(())
        some = torch.randperm(len(first), generator=draws)[:_CONTRASTED]
        step = torch.randint(1, len(first), (len(some),), generator=draws)
        others = (some + step) % len(first)
        own = torch.sigmoid(self._judged(first[some], second[some]))
        mixed = self._judged(first[some], second[others]), self._judged(first[others], second[some])
        hinges = [torch.relu(_MARGIN - own + torch.sigmoid(one)) for one in mixed]
        return torch.stack(hinges).sum(dim=0).mean()

    def _judged(self, first: Tensor, second: Tensor) -> Tensor:
        hidden = torch.cat([first, second], dim=1)
        for layer in ("judge.0", "judge.1"):
            hidden = torch.relu(self.linear(layer, hidden))
        return self.linear("judge.2", hidden)[:, 0]

    @torch.no_grad()
    def scorer_of(self, domain: str) -> Scorer:
        vectors = {name: self.encode(name)[0] for name in self.names}
        users = self.exchanged(vectors, self.known_to_both)[domain]
        if self.config.known_by == "both":
            users = (users + vectors[domain]["users"]) / 2
        here, there = self.cold(domain)
        users = users.index_copy(0, here, vectors[self.other(domain)]["users"].index_select(0, there))
        return dot_scorer(users, vectors[domain]["items"])

    def values_of(self, domain: str) -> int:
        return self.data[domain].items


def _pass(name: str, dim: int) -> Layers:
    return {name: ((dim, dim), glorot), f"{name}_bias": ((dim,), zeros)}


def deviation(raw: Tensor) -> Tensor:
    """σ."""
    return torch.exp(0.1 + 0.9 * functional.softplus(raw.clamp_max(0.4)))


def divergence_of(mean: Tensor, spread: Tensor) -> Tensor:
    """KL(N(μ, σ²) ‖ N(0, σ(1)²)), summed over columns; the mean over rows."""
    prior = deviation(torch.ones((), dtype=mean.dtype))
    each = torch.log(prior / spread) + (spread.square() + mean.square()) / (2 * prior.square()) - 0.5
    return each.sum(dim=1).mean()
