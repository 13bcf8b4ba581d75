"""Clients held in several places, and a server, with nothing but the bytes of messages between them.

The smallest federation there can be: it shows that whoever is held where changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confed.clients.gateway import Gateway
from confed.data.split import TrainingData
from confed.engines.domains import SiloEngine
from confed.messages import PeopleRows, Sums
from confed.methods.base import Pieces
from confed.server.uploads import SummedUploads, Uploads
from confed.tensors import joined
from tests.wire import carry_bytes, through_bytes


@dataclass
class Place:
    """Some of the clients, given by their places among all."""

    clients: np.ndarray
    gateway: Gateway

    @property
    def among_all(self) -> Tensor:
        return torch.from_numpy(self.clients)


class Spread:
    """What `LocalEngine` does in one place."""

    def __init__(self, pieces: Pieces, data: TrainingData, seed: int, dtype: torch.dtype, split: list[Any]) -> None:
        self.pieces = pieces
        self.seed = seed
        self.ids = data.ids
        self.agreed = pieces.agreement(dtype)
        shared = pieces.backbone.named(scope="shared")
        start = {spec.name: spec.initial(seed, dtype) for spec in shared}
        pieces.strategy.start(start, torch.from_numpy(data.ids), seed)
        self.places = [
            Place(clients, Gateway(pieces.backbone, pieces.procedure, data.take(clients), seed, dtype))
            for clients in map(np.asarray, split)
        ]

    def round(self, number: int) -> dict[str, Any]:
        strategy = self.pieces.strategy
        chosen = self.pieces.selection.participants(self.ids, self.seed, number)
        uploads = strategy.collector(torch.from_numpy(self.ids[chosen]))
        for place in self.places:
            taking_part = np.flatnonzero(np.isin(place.clients, chosen))
            if len(taking_part):
                self._train(place, taking_part, number, uploads)
        strategy.aggregate(uploads, number)
        push = strategy.push()
        if push:
            for place in self.places:
                place.gateway.store.receive(through_bytes(push.of(place.among_all), self.agreed))
        return strategy.notes()

    def _train(self, place: Place, clients: np.ndarray, number: int, uploads: Uploads) -> None:
        """Strategies that need sums get one message for all clients of a place, others one for each chunk."""
        strategy = self.pieces.strategy
        download = through_bytes(strategy.download().of(place.among_all), self.agreed)
        sent = place.gateway.train(number, download, clients, lambda cohort: cohort.upload(strategy.uploads))
        if not isinstance(uploads, SummedUploads):
            for upload in sent:
                uploads.add(through_bytes(upload, self.agreed))
            return
        own = SummedUploads(uploads.plan, uploads.previous, torch.from_numpy(place.gateway.data.ids[clients]))
        for upload in sent:
            own.add(upload)
        uploads.merge(Sums.from_bytes(own.sums().to_bytes(), self.agreed.sums(own.plan)))

    def state(self) -> dict[str, Tensor]:
        """As `LocalEngine` has it."""
        found = {f"server.{name}": value for name, value in self.pieces.strategy.state().items()}
        for name, first in self.places[0].gateway.store.tensors.items():
            whole = first.new_empty(len(self.ids), *first.shape[1:])
            for place in self.places:
                whole[place.among_all] = place.gateway.store.tensors[name]
            found[f"client.{name}"] = whole
        return found


class CompaniesApart:
    """The companies of a `SiloEngine`, each taken from an engine of its own, and a server from another."""

    def __init__(self, make: Callable[[], SiloEngine]) -> None:
        self.names = list(make().silos)
        self.companies = {name: carry_bytes(make()) for name in self.names}
        self.server = make().server

    def round(self, number: int) -> None:
        uploads = [self._train(name, number) for name in self.names]
        self.server.aggregate(uploads)

    def _train(self, name: str, number: int) -> PeopleRows:
        engine = self.companies[name]
        received = self.server.download(engine.silos[name].shared.people)
        heard = engine.carried(received) if received else None
        loss = engine.silos[name].train(number, heard.tensors if heard else None)
        return engine.carried(engine._sent(name, engine._told(name), loss, number))

    def state(self) -> dict[str, Tensor]:
        parts = {name: self.companies[name].silos[name].state() for name in self.names}
        return joined(parts | {":server": self.server.state()})
