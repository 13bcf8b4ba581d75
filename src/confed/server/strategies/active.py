"""Few clients for many (FedFast's ActvAGG): the server has a vector of every client, and those who did not take part
are moved as those of their group were who did.

Networks are averaged by the clients' numbers of rows, and an item's rows weighted by how far each client moved them.
Participants' vectors are those that they sent. Then all clients are grouped by their vectors, and in every group the
others are moved by γ times the mean move of its participants; γ shrinks from round to round. The next round's
participants are chosen from groups that are found in the same way, on the vectors as they are then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from confed.messages import Download, Needs, Over, Push, addressed
from confed.random import Stream
from confed.server.clustering import kmeans
from confed.server.strategies.average import Average
from confed.server.strategies.base import Strategy
from confed.server.uploads import OpenUploads, places_among, with_sent

_GROUPS = "group_of"


class ActiveAverage(Strategy[OpenUploads]):
    """`vector` is the personal parameter; `inner` takes care of what everybody shares."""

    needs: ClassVar[Needs] = "individual"

    def __init__(self, vector: str, inner: Average, groups: int, shrink: float) -> None:
        self.vector = vector
        self.inner = inner
        self.groups = groups
        self.shrink = shrink
        self.plan: Mapping[str, Over] = inner.plan
        self.uploads = inner.uploads | {vector}

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._ids = ids
        self._seed = seed
        self._vectors = shared[self.vector]
        self.inner.start({name: value for name, value in shared.items() if name != self.vector}, ids, seed)
        self._group_of = self._grouped("before", 0)
        self._moved = 0

    def _grouped(self, when: str, number: int) -> Tensor:
        if not len(self._vectors):
            return torch.zeros(0, dtype=torch.int64)
        bits = Stream.of(self._seed, f"groups {when} the round", number).bits(0)
        return kmeans(self._vectors, self.groups, int(bits[0] >> np.uint64(32)))

    @property
    def group_of(self) -> Tensor:
        return self._group_of

    def download(self, clients: Tensor) -> Download:
        of = self.inner.download(clients)
        own = {self.vector: self._vectors.index_select(0, clients)}
        return Download(of.tables, of.table_of, of.side, own, addressed(clients, len(self._ids)))

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """Whoever is new begins with the mean of all vectors."""
        of, _ = self.inner.welcome(newcomers)
        own = {self.vector: self._vectors.mean(dim=0).expand(newcomers, -1).clone()}
        return Download(of.tables, of.table_of, of.side, own, torch.arange(newcomers)), None

    def aggregate(self, uploads: OpenUploads, number: int) -> None:
        self.inner.aggregate(uploads, number)
        before, took_part = self._vectors, places_among(self._ids, uploads.clients)
        self._vectors = with_sent(before, self.vector, uploads, self._ids)
        self._follow(before, took_part, number)
        self._group_of = self._grouped("before", number)

    def _follow(self, before: Tensor, took_part: Tensor, number: int) -> None:
        """Move those who did not take part."""
        groups = self._grouped("after", number)
        marked = torch.zeros(len(groups), dtype=torch.bool).index_fill_(0, took_part, True)
        moves = (self._vectors - before)[marked]
        count = int(groups.max()) + 1
        members = torch.bincount(groups[marked], minlength=count)
        means = torch.zeros(count, moves.shape[1], dtype=moves.dtype).index_add_(0, groups[marked], moves)
        means /= members.clamp(min=1)[:, None]
        self._vectors[~marked] += self.shrink**number * means[groups[~marked]]
        self._moved = int((members[groups[~marked]] > 0).sum())

    def notes(self) -> dict[str, Any]:
        return {"followers": self._moved}

    def state(self) -> dict[str, Tensor]:
        return {**self.inner.state(), self.vector: self._vectors, _GROUPS: self._group_of}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.inner.load(state)
        self._vectors, self._group_of = state[self.vector], state[_GROUPS]
