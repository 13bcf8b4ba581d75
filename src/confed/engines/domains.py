"""Rounds on several domains: each company for itself, or all of them with a server between them.

A domain's tensors carry its name and a slash in the state, the server's `:server/`. Domains train side by side, one on
each thread; what they do depends on their own data and on what the server sent before the round, so the order does not
matter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confed.engines.base import Ints, RoundReport, Trainer
from confed.errors import said_of
from confed.evaluation.domains import DomainScorecard
from confed.messages import PeopleRows
from confed.models.distributions import named
from confed.models.preference import PreferenceSilo
from confed.models.silo import Rows, Silo
from confed.protocol import View
from confed.scoring import Card, fill
from confed.server.barycentre import Barycentre
from confed.silos.exchange import Exchange
from confed.tensors import joined, part_of
from confed.threads import in_parallel

Cards = Mapping[View, DomainScorecard]
_SERVER = ":server"
"""No domain can be called so."""


class DomainTrainer(Trainer[DomainScorecard]):
    """A model of several domains."""

    @abstractmethod
    def serve(self, state: Mapping[str, Tensor], number: int, clients: Ints, domain: str = "") -> Tensor:
        """Recommendations are asked of one of the domains."""


class Apart(DomainTrainer):
    """Every domain by itself: what there is without federation."""

    def __init__(self, trainers: Mapping[str, Trainer[Card]]) -> None:
        self.trainers = dict(trainers)
        first = next(iter(self.trainers.values()))
        self.view, self.views = first.view, first.views

    def round(self, number: int, cards: Cards) -> RoundReport:
        def work(name: str) -> RoundReport:
            with said_of(f"domain {name}"):
                return self.trainers[name].round(number, {view: card[name] for view, card in cards.items()})

        reports = list(in_parallel(work, self.trainers))
        losses = [report.loss for report in reports if report.loss is not None]
        return RoundReport(float(np.mean(losses)) if losses else None, len(reports))

    def state(self) -> dict[str, Tensor]:
        return joined({name: trainer.state() for name, trainer in self.trainers.items()})

    def load(self, state: Mapping[str, Tensor]) -> None:
        for name, trainer in self.trainers.items():
            trainer.load(part_of(state, name))

    def serving_state(self) -> dict[str, Tensor]:
        return joined({name: trainer.serving_state() for name, trainer in self.trainers.items()})

    def serve(self, state: Mapping[str, Tensor], number: int, clients: Ints, domain: str = "") -> Tensor:
        return self.trainers[domain].serve(part_of(state, domain), number, clients)


class SiloEngine(DomainTrainer):
    """Companies that send rows about shared users to a server and get their means back."""

    def __init__(
        self, silos: Mapping[str, Silo], server: Barycentre, view: View, exchange: Exchange | None, seed: int
    ) -> None:
        self.silos = dict(silos)
        self.server = server
        self.exchange = exchange
        self.seed = seed
        known: tuple[View, ...] = ("local", "global") if exchange else ("local",)
        self.view = view
        self.views = tuple(sorted(known, key=lambda one: one != view))

    def upload_parts(self) -> dict[str, int]:
        if not self.exchange:
            return {}
        return {name: self._sent(name, self._told(name), 0.0, 0).nbytes for name in self.silos}

    def round(self, number: int, cards: Cards) -> RoundReport:
        received = {name: self._received(name) for name in self.silos}
        losses = list(in_parallel(lambda name: self._train(name, number, received[name]), self.silos))
        note: dict[str, Any] = {"losses": dict(zip(self.silos, losses, strict=True))}
        up = down = 0
        if self.exchange:
            told = {name: self._told(name) for name in self.silos}
            uploads = [
                self.carried(self._sent(name, told[name], loss, number))
                for name, loss in zip(self.silos, losses, strict=True)
            ]
            self.server.aggregate(uploads)
            up = sum(upload.nbytes for upload in uploads)
            down = sum(rows.nbytes for rows in received.values() if rows)
            note |= self.exchange.note(told)
        self._fill(cards)
        return RoundReport(float(np.mean(losses)), len(self.silos), up, down, note)

    def carried(self, rows: PeopleRows) -> PeopleRows:
        """Rows on their way between a company and the server, who are in one process here."""
        return rows

    def _train(self, name: str, number: int, received: PeopleRows | None) -> float:
        with said_of(f"domain {name}"):
            return self.silos[name].train(number, self._about(name, received))

    def _about(self, name: str, received: PeopleRows | None) -> Rows | None:
        """Rows as a company uses them: in the order of its own shared users."""
        return received.about(self.silos[name].shared.people) if received else None

    def _received(self, name: str) -> PeopleRows | None:
        """What the server has for a company: about all of its shared users, also those it has nothing to tell of."""
        rows = self.server.download(self.silos[name].shared.people) if self.exchange else None
        return self.carried(rows) if rows else None

    def _told(self, name: str) -> Rows:
        """What a company has to tell: about shared users that it has interactions of."""
        silo = self.silos[name]
        return {part: tensor[silo.shared.known] for part, tensor in silo.share().items()}

    def _sent(self, name: str, rows: Rows, loss: float, number: int) -> PeopleRows:
        """The same as it leaves. The noise is a function of the run's seed, so that runs can be repeated. Where there
        is noise the loss stays: it would say something of the rows that noise hides.
        """
        shared = self.silos[name].shared
        assert self.exchange is not None
        protected = self.exchange.protect(rows, self.seed, number, name)
        said = None if self.exchange.mechanism else torch.tensor(loss, dtype=torch.float64)
        return PeopleRows(shared.people[shared.known], protected, said)

    def _fill(self, cards: Cards) -> None:
        for view, card in cards.items():
            for name, silo in self.silos.items():
                fill(card[name], silo.scorer(self._seen_as(name, view)), silo.data.items, silo.hidden)

    def _seen_as(self, name: str, view: View) -> Rows | None:
        return self._about(name, self._received(name)) if view == "global" else None

    def state(self) -> dict[str, Tensor]:
        parts = {name: silo.state() for name, silo in self.silos.items()}
        return joined(parts | {_SERVER: self.server.state()})

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.server.load(part_of(state, _SERVER))
        for name, silo in self.silos.items():
            silo.load(part_of(state, name))

    def serving_state(self) -> dict[str, Tensor]:
        parts = {name: silo.serving_state() for name, silo in self.silos.items()}
        return joined(parts | {_SERVER: {name: table.clone() for name, table in self.server.state().items()}})

    def serve(self, state: Mapping[str, Tensor], number: int, clients: Ints, domain: str = "") -> Tensor:
        self.server.load(part_of(state, _SERVER))
        silo = self.silos[domain]
        silo.load_serving(part_of(state, domain))
        return silo.scorer(self._seen_as(domain, self.view))(torch.from_numpy(clients))

    @torch.no_grad()
    def user_points(self, state: Mapping[str, Tensor] | None = None) -> dict[str, Rows]:
        """Of every company that knows users as distributions, mean and deviation of all its users: in the serving
        `state`, which the companies then keep, or as they stand.
        """
        points: dict[str, Rows] = {}
        for name, silo in self.silos.items():
            if state is not None:
                silo.load_serving(part_of(state, name))
            if isinstance(silo, PreferenceSilo):
                points[name] = named(silo.user_points(), silo.dim)
        return points
