"""Categories of items, found by the server on the mean of the clients' tables and sent to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from confed.messages import Download, Field, Needs
from confed.random import Stream
from confed.server.clustering import kmeans
from confed.server.strategies.average import Average
from confed.server.strategies.base import Strategy
from confed.server.uploads import Uploads


class ItemCategories:
    """Who belongs to which category; nobody before the first round has ended."""

    def __init__(self, clusters: int, items: int) -> None:
        self.clusters = clusters
        self.membership = torch.full((items,), -1)

    def update(self, tables: list[Tensor], stream: Stream) -> None:
        """K-Means on the rows of the mean tables, side by side."""
        seed = int(stream.bits(0)[0] >> np.uint64(32))
        self.membership = kmeans(torch.cat(tables, dim=1), self.clusters, seed)

    @property
    def side(self) -> dict[str, Tensor]:
        """As it is sent."""
        known = bool((self.membership >= 0).all())
        return {"membership": self.membership.to(declared(self.clusters)["membership"].dtype)} if known else {}


def declared(clusters: int) -> dict[str, Field]:
    """One small integer for every item, from the second round on."""
    narrow = next(t for t in (torch.uint8, torch.int16, torch.int32) if clusters <= torch.iinfo(t).max + 1)
    return {"membership": Field(narrow, ("items",), least=0, below=clusters, optional=True)}


class Categorised(Strategy[Uploads]):
    """An average, with the items' categories beside it: CoFedRec's ablations without groups of clients."""

    needs: ClassVar[Needs] = "sum"

    def __init__(self, inner: Average, tables: tuple[str, ...], clusters: int) -> None:
        self.inner = inner
        self.tables = tables
        self.clusters = clusters
        self.plan = inner.plan
        self.uploads = inner.uploads
        self.side = declared(clusters)

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._seed = seed
        self._categories = ItemCategories(self.clusters, len(shared[self.tables[0]]))
        self._together = torch.zeros(len(ids), dtype=torch.int64)
        self.inner.start(shared, ids, seed)

    def download(self, clients: Tensor) -> Download:
        of = self.inner.download(clients)
        return Download(of.tables, of.table_of, {**of.side, **self._categories.side}, alike=self._together)

    def aggregate(self, uploads: Uploads, number: int) -> None:
        self.inner.aggregate(uploads, number)
        means = self.inner.shared
        self._categories.update([means[name] for name in self.tables], Stream.of(self._seed, "categories", number))

    def notes(self) -> dict[str, Any]:
        return {"categories": len(torch.unique(self._categories.membership))}

    def state(self) -> dict[str, Tensor]:
        return {**self.inner.state(), "membership": self._categories.membership}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.inner.load(state)
        self._categories.membership = state["membership"]
