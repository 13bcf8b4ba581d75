"""What methods between companies have in common: a silo for every domain, and what travels between them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from confed.data.interactions import ONLY
from confed.data.shares import AnySplit, Roster, Share
from confed.data.split import TrainingData
from confed.errors import ConfedError
from confed.federations.federated import Server
from confed.messages import Agreement
from confed.methods.base import FederatedMethod, FilteredConfig, Kind, State, Terms
from confed.models.silo import Shared, Silo
from confed.protocol import View
from confed.random import fingerprint
from confed.scoring import Scorer
from confed.server.selection import Selection
from confed.server.strategies import Barycentre
from confed.silos.gateway import Companies
from confed.tensors import part_of


class SiloConfig(FilteredConfig):
    """What every method between companies has."""

    dim: int = Field(default=128, ge=1)
    """Width of user and item vectors."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size; its moments live as long as the company."""
    local_epochs: int = Field(default=5, ge=1)
    """Passes over a company's interactions in one round."""
    batch_size: int = Field(default=256, ge=1)
    """Interactions per local step."""


_SERVER = ":server"
"""No domain can be called so."""


class SiloMethod(FederatedMethod):
    """A method whose clients are companies."""

    kind: ClassVar[Kind] = "silo"
    domains: ClassVar[Literal["one", "several", "any"]] = "several"
    view: ClassVar[View] = "local"
    rounds: ClassVar[int] = 50
    patience: ClassVar[int | None] = 10
    discloses: ClassVar[str] = (
        "which users several companies have in common (matched by salted hashes of ids); and of a user known to two, "
        "either learns what the other sent, as a mean of two without one's own is the other"
    )

    @abstractmethod
    def silo(self, config: Any, data: TrainingData, shared: Shared, seed: int, dtype: str) -> Silo:
        """A company with this data; `seed` is its own."""

    @abstractmethod
    def exchanged(self, config: Any) -> tuple[str, ...]:
        """The names of the rows that travel, each `dim` wide; none where every company stays alone."""

    def start(self, config: Any, people: int, seed: int, dtype: torch.dtype) -> dict[str, Tensor]:
        """What the server knows of people before the first round."""
        return {}

    def server(self, terms: Terms, roster: Roster) -> Server:
        strategy = Barycentre(self.exchanged(terms.config), list(roster.known.values()))
        strategy.start(self.start(terms.config, roster.items, terms.seed, terms.number_type), roster.ids, terms.seed)
        return Server(
            strategy=strategy,
            selection=Selection(),
            agreement=self._agreement(terms, roster.items),
            ids=roster.ids,
            seed=terms.seed,
            view=self._view(terms),
            views=self._views(terms),
            filters=terms.config.filters,
            prefix=f"{_SERVER}/",
        )

    def _agreement(self, terms: Terms, people: int) -> Agreement:
        strategy, filters = Barycentre(self.exchanged(terms.config), ()), terms.config.filters
        shapes = dict.fromkeys(strategy.plan, (people, int(terms.config.dim)))
        uploads = strategy.uploads - filters.silences
        agreement = Agreement(people, terms.number_type, shapes, {}, uploads, strategy.plan, by_rows=True)
        filters.check(agreement, self.name)
        return agreement

    def _view(self, terms: Terms) -> View:
        return terms.view or (self.view if self.exchanged(terms.config) else "local")

    def _views(self, terms: Terms) -> tuple[View, ...]:
        known: tuple[View, ...] = ("local", "global") if self.exchanged(terms.config) else ("local",)
        if self._view(terms) not in known:
            raise ConfedError(f"view = {self._view(terms)!r}: {self.name} can be scored under {' or '.join(known)}")
        return tuple(sorted(known, key=lambda one: one != self._view(terms)))

    def gateway(self, terms: Terms, share: Share) -> Companies:
        silos = {name: self._silo(terms, share, name) for name in share.training}
        agreement = self._agreement(terms, share.people)
        return Companies(silos, share.ids, agreement, terms.seed, terms.config.filters)

    def _silo(self, terms: Terms, share: Share, name: str) -> Silo:
        data, matching = share.training[name], share.matching
        assert matching is not None, "companies were matched"
        users, people = (torch.from_numpy(numbers[name]) for numbers in (matching.users, matching.numbers))
        shared = Shared.of(users, people, data, everybody=matching.people, seed=terms.seed)
        # Companies that know nothing of each other: each draws for itself.
        return self.silo(terms.config, data, shared, fingerprint(terms.seed, name), terms.dtype)

    def scorer(self, terms: Terms, cut: AnySplit, state: State, number: int, domain: str = ONLY) -> Scorer:
        silo = self._silo(terms, Share.of(cut), domain)
        silo.load_serving(part_of(state, domain))
        tables = part_of(state, _SERVER)
        if self._view(terms) == "local" or not tables:
            return silo.scorer()
        return silo.scorer({part: table.index_select(0, silo.shared.people) for part, table in tables.items()})

    def companies(self, terms: Terms, cut: AnySplit, state: State | None) -> Mapping[str, Silo]:
        silos = {name: self._silo(terms, Share.of(cut), name) for name in cut.parts}
        if state is not None:
            for name, silo in silos.items():
                silo.load_serving(part_of(state, name))
        return silos

    def upload_parts(self, terms: Terms, cut: AnySplit) -> dict[str, int]:
        gateway = self.gateway(terms, Share.of(cut))
        return {name: nbytes for name, nbytes in gateway.message_bytes().items() if nbytes}
