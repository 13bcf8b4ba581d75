"""PriCDR: a domain learns with a noisy release of the other's rows (Chen et al. 2022; decisions.md "pricdr").

First each domain gives the other, once, the rows X of the people both have, centred by column, projected to r numbers a
person and blurred (`privacy.projection`): Y. Then in each domain, with the other one's y_u,

    z_u = Enc(dropout(y_u)),   ŷ_u = Dec(ReLU(z_u))            both Linear–ReLU–Linear
    a_u = Users(t_u),  c_i = Items(t^i)                        Linear–Linear, of the user's row and the item's column
    s_ui = κ · cos(a_u, c_i)
    L = Σ_u |ŷ_u − y_u|² + Σ_u Σ_i BCE(s_ui, t_ui) + λ √(Σ_u |z_u − a_u|²)

Sums run over the people of a batch: the first over those of whom there is a y_u, the second over those who have a row
here, the last over those with both. A round is an epoch of either domain, and both are learned apart from each other: a
domain is the target of the other, as the papers print figures of either.

Who has nothing in a domain's training data but was released by the other, a cold user, is scored there with z_u, which
λ has drawn to where a_u would be.

Deviations from the published code: z_u is drawn to the same person's a_u (there the shapes (B, 1, E) and (B, E) make it
all pairs of a batch); columns are centred by the mean over people (there the sum is divided by the number of columns);
the release has noise in all directions, and its projection is Gaussian, not sparse (`privacy.projection` says why).
κ = 1 as printed keeps probabilities between 0.27 and 0.73; `scale = learned` lets it grow. One round is reported, there
the best of every metric.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.config import MethodConfig
from confed.data.domain_split import DomainSplit
from confed.initial import Layers, linear_layer, ones, uniform
from confed.models.binary_rows import dropout_factors, reconstruction, summed
from confed.models.two_domains import TwoDomainModel
from confed.privacy.projection import Projection
from confed.ragged import Ragged
from confed.random import keyed
from confed.scoring import Scorer


class PriCDRConfig(MethodConfig):
    dim: int = Field(default=100, ge=1)
    """Width of all layers."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size."""
    batch_size: int = Field(default=128, ge=1)
    """People per step."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Share of the numbers of a released row that a step does not see."""
    weight_decay: float = Field(default=0.001, ge=0)
    """L2 pull of all parameters towards 0, added to the gradient of a batch's sum."""
    alignment: float = Field(default=100.0, ge=0)
    """λ, the pull between what the release and the domain itself say of a person."""
    scale: Literal["one", "learned"] = "one"
    """κ, what the cosine is multiplied by: 1 as printed, or learned from there."""
    projected: int = Field(default=204, ge=1)
    """r, numbers of a released row: ⌊8 ln(2/ν)/η²⌋ with ν = 0.2 and η = 0.3, as in the published readme."""
    column_epsilon: float = Field(default=0.25, gt=0, le=100)
    """ε₀, the privacy of each of these columns; published: 0.25, 0.5, 1, … 64. What all promise is in the summary."""

    def projection(self, people: int) -> Projection:
        """How the rows of so many are released; δ is one in their number."""
        return Projection(self.projected, self.column_epsilon, 1 / max(people, 2))


class PriCDRModel(TwoDomainModel):
    """By target domain: encoder and decoder of what the other released, and two networks of its own."""

    def __init__(self, config: PriCDRConfig, cut: DomainSplit, seed: int, dtype: str) -> None:
        super().__init__("pricdr", cut, seed, dtype)
        self.config = config
        self.rows = {name: data.positives.unique() for name, data in self.data.items()}
        self.columns = {name: self.rows[name].transposed(data.items) for name, data in self.data.items()}
        self.release = {name: self._released(self.other(name)) for name in self.names}
        """By target domain, what it was given."""
        self.place = {name: _places(self.shared[name], data.users) for name, data in self.data.items()}
        """The row of every user there; −1 of those who are not in it."""
        self.begin(self._layers(), config.learning_rate, config.weight_decay)

    def _released(self, source: str) -> Tensor:
        """Of the people both have, in the order of `shared`."""
        projection = self.config.projection(len(self.shared[source]))
        rows = self.rows[source].take(self.shared[source].numpy())
        projected = summed(rows, projection.drawn(self.data[source].items, self.seed, source), 0.0, None)
        # Centring the columns of X moves every row of X G by the mean of them all.
        return projection.released(projected - projected.mean(dim=0), self.seed, source).to(self.dtype)

    def _layers(self) -> Layers:
        dim, released = self.config.dim, self.config.projected
        layers: Layers = {}
        for name, data in self.data.items():
            layers |= linear_layer(f"{name}.encoder", released, dim) | linear_layer(f"{name}.code", dim, dim)
            layers |= linear_layer(f"{name}.decoder", dim, dim) | linear_layer(f"{name}.decoded", dim, released)
            layers |= _tower(f"{name}.users", data.items, dim) | _tower(f"{name}.items", data.users, dim)
            if self.config.scale == "learned":
                layers[f"{name}.scale"] = (1,), ones
        return layers

    def train(self, number: int) -> float:
        """The mean over users of the cross-entropy of their rows, each before the step it takes part in."""
        total = sum(self._epoch(name, number) for name in self.names)
        return total / max(sum(int(known.sum()) for known in self.known.values()), 1)

    def _epoch(self, name: str, number: int) -> float:
        """One pass over a domain; the sum of its users' cross-entropies."""
        users = torch.nonzero(self.known[name] | (self.place[name] >= 0))[:, 0]
        order = torch.randperm(len(users), generator=keyed(self.seed, f"shuffle {name}", number))
        total = 0.0
        for step, some in enumerate(torch.split(users[order], self.config.batch_size)):
            rating, others = self.losses(name, some, keyed(self.seed, f"dropout {name}", number, step))
            self.learner.step(rating + others)
            total += float(rating.detach())
        return total

    def losses(self, name: str, users: Tensor, dropout: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The cross-entropy of the rows of `users`, and the sum of the other two terms."""
        told = users[self.place[name].index_select(0, users) >= 0]
        release = self.release[name].index_select(0, self.place[name].index_select(0, told))
        code = self.encode(name, release, dropout)
        decoded = self.linear(f"{name}.decoded", torch.relu(self.linear(f"{name}.decoder", torch.relu(code))))
        known = users[self.known[name].index_select(0, users)]
        own = self.user_vectors(name, known)
        logits = self.scores(name, own, self.item_vectors(name))
        rating = reconstruction(logits, self.rows[name].take(known.numpy()))
        both, there = _meeting(known, told)
        gaps = code.index_select(0, there) - own.index_select(0, both)
        others = (decoded - release).square().sum() + self.config.alignment * _length(gaps)
        return rating, others

    def encode(self, name: str, release: Tensor, dropout: torch.Generator | None = None) -> Tensor:
        """z, of rows that were released to domain `name`, with numbers struck out by `dropout` if it is given."""
        if dropout is not None:
            release = release * dropout_factors(release.shape, self.config.dropout, dropout, release.dtype)
        return self.linear(f"{name}.code", torch.relu(self.linear(f"{name}.encoder", release)))

    def user_vectors(self, name: str, users: Tensor) -> Tensor:
        """a, of the users' own rows."""
        return self._climbed(f"{name}.users", self.rows[name].take(users.numpy()))

    def item_vectors(self, name: str) -> Tensor:
        """c, of the items' columns."""
        return self._climbed(f"{name}.items", self.columns[name])

    def scores(self, name: str, users: Tensor, items: Tensor) -> Tensor:
        """κ · cos of all pairs of vectors."""
        cosines = functional.normalize(users, dim=1) @ functional.normalize(items, dim=1).T
        return cosines * self.params[f"{name}.scale"] if self.config.scale == "learned" else cosines

    def _climbed(self, tower: str, rows: Ragged) -> Tensor:
        entered = summed(rows, self.params[f"{tower}.input"], 0.0, None) + self.params[f"{tower}.input_bias"]
        return self.linear(f"{tower}.output", entered)

    @torch.no_grad()
    def vectors(self, name: str) -> Tensor:
        """(users, d) of a domain; of cold users what the release says."""
        found = self.user_vectors(name, torch.arange(self.data[name].users))
        new = torch.nonzero(~self.known[name] & (self.place[name] >= 0))[:, 0]
        found[new] = self.encode(name, self.release[name][self.place[name][new]])
        return found

    @torch.no_grad()
    def scorer_of(self, domain: str) -> Scorer:
        users, items = self.vectors(domain), self.item_vectors(domain)

        @torch.no_grad()
        def score(clients: Tensor) -> Tensor:
            return self.scores(domain, users.index_select(0, clients), items)

        return score

    def values_of(self, domain: str) -> int:
        return self.data[domain].items


def _tower(name: str, inputs: int, dim: int) -> Layers:
    """Two linear layers of rows of zeros and ones; the first weight has a row for every place in them."""
    first: Layers = {
        f"{name}.input": ((inputs, dim), uniform(inputs**-0.5)),
        f"{name}.input_bias": ((dim,), uniform(inputs**-0.5)),
    }
    return first | linear_layer(f"{name}.output", dim, dim)


def _places(shared: Tensor, users: int) -> Tensor:
    return torch.full((users,), -1).index_copy_(0, shared, torch.arange(len(shared)))


def _meeting(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The places, in either list of distinct numbers, of those that are in both."""
    pairs = torch.nonzero(one[:, None] == other)
    return pairs[:, 0], pairs[:, 1]


def _length(rows: Tensor) -> Tensor:
    """Of all rows as one vector; where it is 0 it has no slope."""
    return rows.square().sum().clamp_min(torch.finfo(rows.dtype).tiny).sqrt()
