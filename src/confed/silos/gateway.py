"""Companies in one place: each with its own users, its own model, and rows about people whom others know too.

They train side by side, one on each thread; what a company does depends on its own data and on what the server sent
before the round, so the order does not matter. A company's tensors carry its name and a slash in the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from confed.errors import MessageError, in_domain
from confed.federations.gateway import Cards, Gateway
from confed.messages import Agreement, Download, Upload
from confed.models.silo import Rows, Silo
from confed.privacy.filters import Chain
from confed.scoring import fill
from confed.soundness import LESS_NOISE, SMALLER_STEPS, trained
from confed.tensors import joined, part_of
from confed.threads import in_parallel


class Companies(Gateway):
    """`silos` by domain; `ids` are the companies' in the same order."""

    def __init__(self, silos: Mapping[str, Silo], ids: Tensor, agreement: Agreement, seed: int, filters: Chain) -> None:
        self.silos = dict(silos)
        self.domains = tuple(silos)
        self.ids = ids
        self.agreement = agreement
        self.filters = filters
        self.seed = seed
        self._notes: dict[str, Any] = {}

    def train(self, number: int, download: Download, clients: Tensor, cards: Cards) -> Iterator[Upload]:
        names = [list(self.silos)[place] for place in clients.tolist()]
        received = {name: self.about(name, download) for name in names}
        losses = list(in_parallel(lambda name: self._train(name, number, received[name]), names))
        self._notes = {"losses": dict(zip(names, losses, strict=True))}
        for name, place, loss in zip(names, clients.tolist(), losses, strict=True):
            yield self._upload(name, place, loss)
        for name, card in cards.items():
            self._fill(name, card, None)

    def _train(self, name: str, number: int, received: Rows | None) -> float:
        with in_domain(name):
            silo = self.silos[name]
            remedy = LESS_NOISE if self.filters.filters else SMALLER_STEPS
            return trained(lambda: silo.train(number, received), silo.state, silo.data.items, remedy)

    def about(self, name: str, download: Download) -> Rows | None:
        """What the server sent about a company's shared users, in their order; nothing before anything is known."""
        if not download.tables:
            return None
        people = self.silos[name].shared.people
        if download.rows is None or not bool(torch.isin(people, download.rows).all()):
            raise MessageError(f"rows about all {len(people)} shared users of {name} are expected")
        order = torch.argsort(download.rows)
        places = order[torch.searchsorted(download.rows, people, sorter=order)]
        return {part: table[0].index_select(0, places) for part, table in download.tables.items()}

    def _upload(self, name: str, place: int, loss: float) -> Upload:
        """What a company has to tell: about shared users that it has interactions of."""
        silo = self.silos[name]
        known, shared = silo.shared.known, silo.share()
        tables = {part: shared[part][known][None] for part in self.agreement.plan}
        tensors = {**tables, "loss": torch.tensor([loss], dtype=torch.float64)}
        return Upload(self.ids[place : place + 1], tensors, silo.shared.people[known])

    def called(self, client: int) -> str:
        return list(self.silos)[self.ids.tolist().index(client)]

    def message_bytes(self) -> dict[str, int]:
        """By company, of what it sends in a round."""
        uploads = {name: self._upload(name, place, 0.0) for place, name in enumerate(self.silos)}
        return {name: upload.only(self.agreement.uploads).bytes_per_client for name, upload in uploads.items()}

    def score(self, download: Download, cards: Cards) -> None:
        for name, card in cards.items():
            self._fill(name, card, self.about(name, download))

    def users_of(self, clients: Tensor) -> dict[str, Tensor | None]:
        return {list(self.silos)[place]: None for place in clients.tolist()}

    def _fill(self, name: str, card: Any, received: Rows | None) -> None:
        silo = self.silos[name]
        with in_domain(name):
            fill(card, silo.scorer(received), silo.hidden * silo.data.items)

    def notes(self) -> dict[str, Any]:
        return self._notes

    def state(self) -> dict[str, Tensor]:
        return joined({name: silo.state() for name, silo in self.silos.items()})

    def load(self, state: Mapping[str, Tensor]) -> None:
        for name, silo in self.silos.items():
            silo.load(part_of(state, name))

    def serving_state(self) -> dict[str, Tensor]:
        return joined({name: silo.serving_state() for name, silo in self.silos.items()})
