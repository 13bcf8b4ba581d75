"""A mean for everybody, and one for each group of clients (PerFedRec).

The server has a vector of every client. After a round it groups all clients by their vectors; a group's table is the
mean of what its participants sent, or everybody's where none took part. Clients begin a round with their group's table,
and are scored with the mean of three: everybody's, their group's, and, of those who took part in the last round, their
own. Of that the server has what they began with, and they what they made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from confed.messages import Download, Needs, Over, Push, addressed
from confed.protocol import View
from confed.random import Stream
from confed.server.clustering import kmeans
from confed.server.strategies.base import Strategy
from confed.server.uploads import OpenUploads, places_among, with_sent


class GroupMeans(Strategy[OpenUploads]):
    """Of one table; `vector` and `share` are personal parameters."""

    needs: ClassVar[Needs] = "individual"
    view: ClassVar[View] = "ensemble"

    def __init__(self, table: str, vector: str, share: str, groups: int) -> None:
        self.table = table
        self.vector = vector
        self.share = share
        self.groups = groups
        self.plan: Mapping[str, Over] = {table: "participants"}
        self.uploads = frozenset({table, vector, "loss"})
        self.several = frozenset({table})

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._ids = ids
        self._seed = seed
        self._mean = shared[self.table]
        self._vectors = shared[self.vector]
        self._means = self._mean.expand(self.groups, -1, -1).clone()
        self._begun = self._means
        self._group_of = torch.zeros(len(ids), dtype=torch.int64)
        self._began_with = torch.full((len(ids),), -1)

    @property
    def group_of(self) -> Tensor:
        return self._group_of

    def download(self, clients: Tensor) -> Download:
        return Download({self.table: self._means}, self._group_of, **self._own(clients, torch.zeros(len(clients))))

    def serving(self, clients: Tensor) -> Download:
        """Everybody's table and the group's, and, of those who took part, what they began with: a version for each
        combination that there is.
        """
        groups, began = self._group_of[clients], self._began_with[clients]
        kinds, kind_of = torch.unique(torch.stack([groups, began]), dim=1, return_inverse=True)
        tables = torch.stack([self._blend(*kind) for kind in kinds.T.tolist()])
        table_of = torch.full((len(self._ids),), -1)
        table_of[clients] = kind_of
        shares = torch.where(began >= 0, 1.0 / 3.0, 0.0)
        return Download({self.table: tables}, table_of, **self._own(clients, shares))

    def _blend(self, group: int, began: int) -> Tensor:
        both = self._mean + self._means[group]
        return both / 2.0 if began < 0 else (both + self._begun[began]) / 3.0

    def _own(self, clients: Tensor, shares: Tensor) -> dict[str, Any]:
        vectors = self._vectors.index_select(0, clients)
        own = {self.vector: vectors, self.share: shares[:, None].to(vectors.dtype)}
        return {"own": own, "own_of": addressed(clients, len(self._ids))}

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """Whoever is new is in no group yet, and begins with the mean of all vectors."""
        everybody = torch.arange(newcomers)
        vectors = self._vectors.mean(dim=0).expand(newcomers, -1).clone()
        own = {self.vector: vectors, self.share: vectors.new_zeros(newcomers, 1)}
        return Download({self.table: self._mean[None]}, torch.zeros_like(everybody), own=own, own_of=everybody), None

    def aggregate(self, uploads: OpenUploads, number: int) -> None:
        took_part = places_among(self._ids, uploads.clients)
        self._began_with = torch.full_like(self._began_with, -1).index_copy_(0, took_part, self._group_of[took_part])
        self._begun = self._means
        self._vectors = with_sent(self._vectors, self.vector, uploads, self._ids)
        self._mean = uploads.mean(self.table)
        seed = int(Stream.of(self._seed, "groups", number).bits(0)[0] >> np.uint64(32))
        self._group_of = kmeans(self._vectors, self.groups, seed)
        self._means = self._group_means(uploads, self._group_of[took_part])

    def _group_means(self, uploads: OpenUploads, groups: Tensor) -> Tensor:
        present = torch.unique(groups)
        found = uploads.means([self.table], [uploads.clients[groups == group] for group in present])
        means = self._mean.expand(self.groups, -1, -1).clone()
        for group, of in zip(present.tolist(), found, strict=True):
            means[group] = of[self.table]
        return means

    def notes(self) -> dict[str, Any]:
        return {"groups": torch.bincount(self._group_of, minlength=self.groups).tolist()}

    def state(self) -> dict[str, Tensor]:
        return {
            self.table: self._mean,
            self.vector: self._vectors,
            "group_means": self._means,
            "group_of": self._group_of,
            "begun": self._begun,
            "began_with": self._began_with,
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._mean, self._vectors = state[self.table], state[self.vector]
        self._means, self._group_of = state["group_means"], state["group_of"]
        self._begun, self._began_with = state["begun"], state["began_with"]
