"""Silos that know users as preference distributions: what FPPDM adds to a local model (decisions.md "fppdm").

    minimise  ℓ_R + λ_P ℓ_P + λ_C ℓ_C

ℓ_R is the local model's own loss. ℓ_P, the squared Wasserstein distance of a batch's shared users to what the server
sent, keeps all companies' ideas of a user together; it is 0 in round 1, when nothing was sent (D-37). ℓ_C draws users
with similar tastes together (`compactness`). All that a local model has to give is points for its users.

Both are means over the users of a batch, among whom a user that nobody else knows counts as 0 in ℓ_P: the weights mean
the same whether all users are shared or few. ℓ_R is a mean over the batch's rows, of which a graph has several for some
users; next to sums of all three, λ_P and λ_C are about 1.3 times as large as printed on Douban.

A shared user without interactions in the domain is in no batch. So that the company gets an idea of him nevertheless,
which ℓ_P alone can give it (D-38), every epoch passes these users too, spread evenly over its batches.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from confed.data.split import TrainingData
from confed.models.compactness import CoClustering
from confed.models.distributions import named, unnamed
from confed.models.learner import Learned, Learner
from confed.models.silo import Rows, Shared, Silo, replaced
from confed.random import Stream
from confed.scoring import Scorer


@dataclass(frozen=True)
class Pull:
    """What draws the distributions of users: towards the server's, and towards each other."""

    alignment: float
    """λ_P."""
    clustering: float
    """λ_C; 0 leaves co-clustering out."""
    co_clustering: CoClustering
    cluster_every: int = 1
    """Batches from one co-clustering to the next; its weight grows by the same factor."""


@dataclass(frozen=True)
class Batch:
    """A step's place in the round, and the shared users without interactions who pass with it."""

    round: int
    step: int
    unheard: Tensor


class PreferenceSilo(Learned, Silo):
    """A local model with user distributions of width `dim`, or, deterministic, with points."""

    def __init__(
        self,
        data: TrainingData,
        shared: Shared,
        seed: int,
        learner: Learner,
        pull: Pull,
        *,
        dim: int,
        local_epochs: int,
    ) -> None:
        super().__init__(data, shared)
        self.seed = seed
        self.learner = learner
        self.params = learner.params
        for value in self.params.values():
            value.requires_grad_()
        self.pull = pull
        self.dim = dim
        self.local_epochs = local_epochs
        self.place = torch.full((data.users,), -1).index_copy_(0, shared.users, torch.arange(len(shared.users)))
        self.unheard = shared.users[~shared.known]
        self.target: Tensor | None = None

    @abstractmethod
    def steps(self) -> int:
        """How many batches an epoch has."""

    @abstractmethod
    def epoch(self, number: int, epoch: int, batches: list[Batch]) -> float:
        """One pass; the mean of the local model's own loss ℓ_R."""

    @abstractmethod
    def user_points(self) -> Tensor:
        """(users, d): all users' distributions, as points."""

    @abstractmethod
    def item_scorer(self, users: Tensor) -> Scorer:
        """Scores by the points `users` (users, d)."""

    def train(self, number: int, received: Rows | None) -> float:
        self.target = None if received is None else unnamed(received).to(next(iter(self.params.values())).dtype)
        steps = self.steps()
        losses = []
        for epoch in range(self.local_epochs):
            extra = torch.tensor_split(self.unheard, steps)
            batches = [Batch(number, epoch * steps + step, extra[step]) for step in range(steps)]
            losses.append(self.epoch(number, epoch, batches))
        return float(np.mean(losses))

    def pulled(self, batch: Batch, users: Tensor, points: Tensor, unheard: Tensor) -> Tensor:
        """λ_P ℓ_P + λ_C ℓ_C of a batch's distinct `users` at `points`; the points of the `unheard` are aligned too."""
        aligned = self._aligned(torch.cat([users, batch.unheard]), torch.cat([points, unheard]))
        return aligned + self._clustered(batch, points)

    def _aligned(self, users: Tensor, points: Tensor) -> Tensor:
        place = self.place.index_select(0, users)
        mine = torch.nonzero(place >= 0)[:, 0]
        if self.target is None or not self.pull.alignment or not len(mine):
            return points.new_zeros(())
        target = self.target.index_select(0, place.index_select(0, mine))
        distance = (points.index_select(0, mine) - target).square().sum()
        return self.pull.alignment / len(users) * distance

    def _clustered(self, batch: Batch, points: Tensor) -> Tensor:
        pull = self.pull
        if not pull.clustering or self._steps_before(batch) % pull.cluster_every or not len(points):
            return points.new_zeros(())
        stream = Stream.of(self.seed, "clusters", batch.round)
        return pull.clustering * pull.cluster_every * pull.co_clustering.loss(points, stream, batch.step)

    def _steps_before(self, batch: Batch) -> int:
        """Since the first round: a round may have fewer steps than lie between two co-clusterings."""
        return (batch.round - 1) * self.local_epochs * self.steps() + batch.step

    def step(self, loss: Tensor) -> None:
        self.learner.step(loss)

    @torch.no_grad()
    def share(self) -> Rows:
        return named(self.user_points().index_select(0, self.shared.users), self.dim)

    @torch.no_grad()
    def users_as_rows(self) -> Rows:
        return named(self.user_points(), self.dim)

    @torch.no_grad()
    def scorer(self, received: Rows | None = None) -> Scorer:
        rows = None if received is None else unnamed(received)
        return self.item_scorer(replaced(self.user_points(), self.shared.users, rows))
