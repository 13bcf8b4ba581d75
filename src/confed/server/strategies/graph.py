"""Means over a graph of clients (GPFedRec): everybody gets the mean of the tables of those who are like them.

The tables of a round's participants, flattened, are held against each other by their cosines. Whoever is more like a
client than the mean over all pairs (times a threshold), or is among its k nearest, is its neighbour; the target of a
client is the mean over its neighbours, after several layers the mean of their means. What everybody begins the next
round with is the mean of all targets. Whoever did not take part has that for a target as well.

The graph means that many numbers are read for each pair of clients. So targets are made when they are asked for, turn
by turn, and cosines are summed over stretches of items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from confed.messages import Download, Needs, Over, Push, addressed
from confed.room import require_room
from confed.server.strategies.base import Strategy
from confed.server.uploads import OpenUploads, places_among

TARGET = "target"
_TURN_VALUES = 1 << 24
"""Of the tables of a turn's clients: 64 MB."""
_STRETCH = 1 << 12
"""Columns of the flattened tables of which products are summed at once."""


@dataclass(frozen=True)
class Neighbourhood:
    """Who is whose neighbour."""

    nearest: int | None = None
    """So many of them, oneself included; not said: by the threshold."""
    threshold: float = 1.0
    """In multiples of the mean similarity."""
    by: Literal["similarity", "distance"] = "similarity"
    """`distance` is published code's: it links those who are *least* alike."""
    layers: int = 1

    def weights(self, cosines: Tensor) -> Tensor:
        """(clients, clients): rows that sum to 1, of what a client's mean is made; oneself, where nobody is near."""
        like = cosines if self.by == "similarity" else 1.0 - cosines
        if self.nearest is None:
            near = like > self.threshold * like.mean()
        else:
            chosen = torch.sort(like, dim=1, descending=True, stable=True).indices[:, : self.nearest]
            near = torch.zeros_like(like, dtype=torch.bool).scatter_(1, chosen, True)
        near |= torch.eye(len(near), dtype=torch.bool) & ~near.any(dim=1, keepdim=True)
        once = near.to(cosines.dtype)
        once /= once.sum(dim=1, keepdim=True)
        whole = once
        for _ in range(self.layers - 1):
            whole = once @ whole
        return whole


class GraphMean(Strategy[OpenUploads]):
    """Of one table."""

    needs: ClassVar[Needs] = "individual"

    def __init__(self, table: str, shape: tuple[int, int], neighbourhood: Neighbourhood) -> None:
        self.table = table
        self.shape = shape
        self.neighbourhood = neighbourhood
        self.plan: Mapping[str, Over] = {}
        self.uploads = frozenset({table, "loss"})
        self.own = {TARGET: shape}
        self.at_once = max(_TURN_VALUES // math.prod(shape), 1)

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._ids = ids
        self._seed = seed
        self._mean = shared[self.table]
        self._sent = self._mean.new_empty(0, *self.shape)
        self._weights = self._mean.new_empty(0, 0)
        self._sender = torch.full((len(ids),), -1)
        self._await_round()

    def _await_round(self) -> None:
        self._arrived: list[Tensor] = []
        """The places of those who have sent something."""
        self._arriving: Tensor | None = None
        """What they sent, each in the place of the client: made once, filled turn by turn in whatever order."""

    def download(self, clients: Tensor) -> Download:
        everybody, own = torch.zeros(len(self._ids), dtype=torch.int64), {TARGET: self._targets(clients)}
        own_of = addressed(clients, len(self._ids))
        return Download({self.table: self._mean[None]}, everybody, own=own, own_of=own_of)

    def serving(self, clients: Tensor) -> Download:
        """Nobody is scored with a target."""
        everybody = torch.zeros(len(self._ids), dtype=torch.int64)
        return Download({self.table: self._mean[None]}, everybody, own={TARGET: self._mean[None]}, own_of=everybody)

    def require_room(self, clients: int, dtype: torch.dtype) -> None:
        what, remedy = (
            f"three copies of the tables of {clients:,} clients",
            "use fewer users or items, or a smaller `dim`",
        )
        require_room(what, 3 * clients * math.prod(self.shape) * dtype.itemsize, remedy)

    def _targets(self, clients: Tensor) -> Tensor:
        """(clients, items, d)."""
        senders = self._sender[clients]
        targets = self._mean.expand(len(clients), -1, -1).clone()
        if bool((senders >= 0).any()):
            flat = self._sent.view(len(self._sent), -1)
            made = self._weights[senders[senders >= 0]] @ flat
            targets[senders >= 0] = made.view(-1, *self.shape)
        return targets

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """Whoever is new has no neighbours yet."""
        everybody = torch.zeros(newcomers, dtype=torch.int64)
        own = {TARGET: self._mean[None]}
        return Download({self.table: self._mean[None]}, everybody, own=own, own_of=everybody), None

    def aggregate(self, uploads: OpenUploads, number: int) -> None:
        if self._arriving is None:
            self._arriving = self._mean.new_empty(len(self._ids), *self.shape)
        for ids, sent in uploads.each([self.table], uploads.clients):
            places = places_among(self._ids, ids)
            self._arriving[places] = sent[self.table]
            self._arrived.append(places)

    def finish(self, number: int) -> None:
        assert self._arriving is not None, "a round has a turn"
        places, sent = torch.cat(self._arrived).sort().values, self._arriving
        if len(places) < len(sent):
            sent = sent.index_select(0, places)
        self._await_round()
        self._sender = addressed(places, len(self._ids))
        flat = sent.view(len(sent), -1)
        self._sent, self._weights = sent, self.neighbourhood.weights(_cosines(flat))
        self._mean = (self._weights.mean(dim=0) @ flat).view(self.shape)

    def state(self) -> dict[str, Tensor]:
        return {self.table: self._mean, "sent": self._sent, "weights": self._weights, "sender": self._sender}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._mean, self._sent = state[self.table], state["sent"]
        self._weights, self._sender = state["weights"], state["sender"]
        self._await_round()  # anew, where one was broken off


def _cosines(vectors: Tensor) -> Tensor:
    """(n, n) of the rows; one of length 0 is like nobody."""
    products = vectors.new_zeros(len(vectors), len(vectors))
    for some in torch.split(vectors, _STRETCH, dim=1):
        products.addmm_(some, some.T)
    lengths = products.diagonal().sqrt()
    scale = torch.where(lengths > 0, lengths.reciprocal(), torch.zeros_like(lengths))
    return products.mul_(scale[:, None]).mul_(scale)
