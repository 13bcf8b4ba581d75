"""An average, and a third party beside it that knows who shares items with whom (FedPerGNN's graph expansion).

Clients send tokens of their items, which nobody can read who does not have the clients' key; two clients with the same
token have the same item. So every client can be sent, for each of its items, vectors of others who have it, and is not
told whose they are. In the first round there are none: no tokens have been sent.

Clients take turns, and every turn is averaged. The server, which plays the third party here, has a vector of every
client.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.compiled import compiled
from confed.messages import Download, Needs, Over, Push, addressed
from confed.room import require_room
from confed.server.strategies.average import Average
from confed.server.strategies.base import Strategy
from confed.server.uploads import OpenUploads, places_among

TOKENS = "tokens"
Ints = NDArray[np.int64]
Floats = NDArray[np.floating]


class Expanded(Strategy[OpenUploads]):
    """`vector` is the personal parameter; `inner` takes care of what everybody shares."""

    needs: ClassVar[Needs] = "individual"
    moves: ClassVar[bool] = True

    def __init__(
        self, vector: str, neighbours: str, shape: tuple[int, int, int], inner: Average, turn: int, *, expand: bool
    ) -> None:
        """`shape`: items of a client that are looked at, others for each of them at most, and the vectors' width."""
        self.vector = vector
        self.neighbours = neighbours
        self.shape = shape
        self.inner = inner
        self.at_once = turn
        self.expand = expand
        self.plan: Mapping[str, Over] = inner.plan
        self.own = {neighbours: shape}
        self.uploads = inner.uploads | {vector} | ({TOKENS} if expand else frozenset())

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._ids = ids
        self._seed = seed
        self._vectors = shared[self.vector]
        self._know(torch.full((len(ids), self.shape[0]), -1))
        self.inner.start({name: value for name, value in shared.items() if name != self.vector}, ids, seed)

    def download(self, clients: Tensor) -> Download:
        of = self.inner.download(clients)
        own = {self.vector: self._vectors.index_select(0, clients), self.neighbours: self._expanded(clients)}
        return Download(of.tables, of.table_of, of.side, own, addressed(clients, len(self._ids)))

    def _expanded(self, clients: Tensor) -> Tensor:
        """(clients, items, others, width): vectors of others who have the items, zeros where there are no more."""
        found = self._vectors.new_zeros(len(clients), *self.shape)
        if self.expand:
            told = (self._tokens, *self._holders, self._vectors, clients, self._ids, found)
            _expand(*(tensor.numpy() for tensor in told))
        return found

    def _know(self, tokens: Tensor) -> None:
        """Clients' tokens; and all of them in order, with who has each."""
        self._tokens = tokens
        ordered, places = tokens.flatten().sort(stable=True)
        self._holders = ordered, places // tokens.shape[1]

    def require_room(self, clients: int, dtype: torch.dtype) -> None:
        few = min(self.at_once or clients, clients)
        what = f"vectors of others for {few:,} clients at once"
        require_room(
            what, 2 * few * math.prod(self.shape) * dtype.itemsize, "lower `clients_per_turn`, or `neighbours`"
        )

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """Whoever is new has no tokens yet, and begins with the mean of all vectors."""
        of, _ = self.inner.welcome(newcomers)
        vectors = self._vectors.mean(dim=0).expand(newcomers, -1).clone()
        nobody = vectors.new_zeros(1, *self.shape).expand(newcomers, -1, -1, -1)
        own = {self.vector: vectors, self.neighbours: nobody}
        return Download(of.tables, of.table_of, of.side, own, torch.arange(newcomers)), None

    def aggregate(self, uploads: OpenUploads, number: int) -> None:
        self.inner.aggregate(uploads, number)
        self._vectors, tokens = self._vectors.clone(), self._tokens.clone()
        names = [self.vector, *([TOKENS] if self.expand else [])]
        for ids, sent in uploads.each(names, uploads.clients):
            places = places_among(self._ids, ids)
            self._vectors[places] = sent[self.vector]
            if self.expand:
                tokens[places] = sent[TOKENS]
        if not torch.equal(tokens, self._tokens):
            self._know(tokens)

    def state(self) -> dict[str, Tensor]:
        return {**self.inner.state(), self.vector: self._vectors, TOKENS: self._tokens}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.inner.load(state)
        self._vectors = state[self.vector]
        self._know(state[TOKENS])


@compiled
def _expand(
    tokens: Ints, ordered: Ints, holders: Ints, vectors: Floats, clients: Ints, ids: Ints, found: Floats
) -> None:
    """For every token of every client, others who have it: all, or some from a place on that its id and token give."""
    most = found.shape[2]
    for place in range(len(clients)):
        client = clients[place]
        for slot in range(tokens.shape[1]):
            token = tokens[client, slot]
            if token < 0:
                continue
            first = np.searchsorted(ordered, token)
            last = np.searchsorted(ordered, token, side="right")
            begin = (ids[client] ^ token) % (last - first)
            taken = 0
            for step in range(last - first):
                other = holders[first + (begin + step) % (last - first)]
                if taken == most:
                    break
                if other != client:
                    found[place, slot, taken] = vectors[other]
                    taken += 1
