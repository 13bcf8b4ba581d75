"""What methods have in common whose clients are people: each is a choice of five pieces, and the rest is machinery."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from confed.clients.backbones import Backbone
from confed.clients.gateway import People, touched_rows
from confed.clients.objectives import BCE, SaturatingBCE, Term
from confed.clients.optim import OPTIMISERS
from confed.clients.procedures import Phase, Procedure, Step, Visit
from confed.clients.replay import Replay
from confed.clients.store import require_memory
from confed.config import MethodConfig
from confed.data.interactions import ONLY
from confed.data.negatives import check_negative_pool
from confed.data.shares import AnySplit, Roster, Share
from confed.data.split import TrainingData
from confed.errors import ConfedError, said_of
from confed.evaluation.judge import Judge, asked_of
from confed.federations.federated import Server
from confed.federations.states import of_clients
from confed.initial import require_room_for
from confed.messages import Agreement, Push, Tally
from confed.methods.base import FederatedMethod, FilteredConfig, Kind, State, Terms
from confed.methods.rates import PAPERS, facts_of, in_words, item_rate_factor
from confed.privacy.filters import NO_FILTERS, Chain
from confed.protocol import View
from confed.ragged import Ragged
from confed.scoring import Scorer
from confed.server.selection import Selection, chosen
from confed.server.strategies import AnyStrategy

CATCH_UP = 100
"""Rounds of local training that a newcomer makes up for at most: after one, its own parameters are still nearly where
they began."""


class Reproduction(BaseModel):
    """Faithfulness to flaws of published code, off by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    saturating_bce: bool = False
    """Cross-entropy of float32 probabilities, whose gradient vanishes on saturated errors (D-1)."""


class DeviceConfig(FilteredConfig):
    """What every cross-device method has."""

    dim: int = Field(default=32, ge=1)
    """Width of item and user vectors."""
    learning_rate: float = Field(default=0.1, gt=0)
    """Step size of the private parameters and networks."""
    fraction: float = Field(default=1.0, gt=0, le=1)
    """Share of the clients that take part in a round."""


class FederatedConfig(DeviceConfig):
    """And those that descend in batches of rows."""

    local_epochs: int = Field(default=1, ge=1)
    """Passes over a client's rows in one round."""
    batch_size: int = Field(default=256, ge=1)
    """Rows per local step."""
    train_negatives: int = Field(default=4, ge=1)
    """Sampled negatives per positive, redrawn every round."""
    reproduction: Reproduction = Reproduction()
    """Flaws of published code to reproduce, such as reproduction.saturating_bce."""

    @property
    def loss(self) -> Term:
        return SaturatingBCE() if self.reproduction.saturating_bce else BCE()

    def phase(self, *steps: Step, **more: Any) -> Phase:
        """The steps, in so many passes over the client's rows as is set; `more` of what a phase has."""
        return Phase(steps, self.local_epochs, self.batch_size, **more)


class ScaledItemsConfig(FederatedConfig):
    """Of methods that average item tables over all clients and make up for the dilution."""

    item_rate_factor: float | None = Field(default=None, gt=0)
    """η: the items are stepped with learning_rate · items · η. If it is not set, it follows from the training data."""

    move: ClassVar[float]
    """items · η · h / b in a round: how far items go, see methods/rates.py."""
    slowest: ClassVar[float] = 0.0
    """The least η that may follow."""

    def item_rate(self, items: int) -> float:
        return self.learning_rate * items * (self.item_rate_factor or PAPERS)

    @property
    def is_open(self) -> bool:
        """Whether η is still to be found; without data it is the papers'."""
        return self.item_rate_factor is None


@dataclass(frozen=True)
class Pieces:
    """The five choices of a cross-device method."""

    backbone: Backbone
    procedure: Procedure
    strategy: AnyStrategy
    selection: Selection
    view: View
    filters: Chain = NO_FILTERS

    def agreement(self, dtype: torch.dtype) -> Agreement:
        """What server and clients settle about their messages before the first round."""
        items = next(spec.shape[0] for spec in self.backbone.named(role="item"))
        received, kept = (
            {spec.name: spec.shape for spec in self.backbone.named(scope="shared", kept=kept, personal=False)}
            for kept in (False, True)
        )
        of = self.strategy
        own = {**of.own, **{spec.name: spec.shape for spec in self.backbone.named(personal=True)}}
        uploads = of.uploads - self.filters.silences
        return Agreement(
            items, dtype, received, kept, uploads, of.plan, of.needs, of.side, own, of.several, self.backbone.history
        )

    def check(self, method: str) -> None:
        """Whether the pieces speak of the same parameters; a slip of the pen must not become another method."""
        possible = [self.served] if self.strategy.moves else ["local", self.served]
        if self.view not in possible:
            names = " or ".join(repr(view) for view in possible)
            raise ConfedError(f"view = {self.view!r}: {method} can be scored under {names}")
        params = [spec.name for spec in self.backbone.params]
        shared = [spec.name for spec in self.backbone.named(scope="shared")]
        for name in self.strategy.plan:
            if name not in shared:
                raise ConfedError(f"{method}: its strategy's plan has {name!r}, its backbone shares {shared}")
        if self.procedure.reconstruct and (self.procedure.dense or self.procedure.virtual):
            raise ConfedError(f"{method}: clients that reconstruct their part have no dense terms, nor virtual rows")
        if self.procedure.round_decay != 1.0 and any(isinstance(phase, Visit) for phase in self.procedure.phases):
            raise ConfedError(f"{method}: a visit has one pace for all rounds, so that there is no `round_decay`")
        for step in self.procedure.steps:
            for name in step.rates:
                if name not in params:
                    raise ConfedError(f"{method}: a step has a rate of {name!r}, its backbone has {params}")
            if step.optimiser not in OPTIMISERS:
                raise ConfedError(f"{method}: optimiser = {step.optimiser!r}, there are {sorted(OPTIMISERS)}")

    @property
    def served(self) -> View:
        """The view of what clients would be served with after the server's step."""
        if self.backbone.named(scope="shared", kept=True):
            return "pushed"
        return "reconstructed" if self.procedure.reconstruct else self.strategy.view

    @property
    def views(self) -> tuple[View, ...]:
        """The view asked for, and beside the `local` one that which is served."""
        if self.view == "local":
            return ("local", self.served) if self.backbone.named(scope="shared") else ("local",)
        return ("pushed", "local") if self.view == "pushed" else (self.view,)

    @property
    def rebuilt(self) -> bool:
        """Under the `local` view the server's answer replaces what was scored: serving trains the round again."""
        return self.view == "local" and len(self.views) > 1

    def trained_again(self, ids: Tensor, seed: int, number: int) -> Tensor:
        """(clients,): who has to be trained again to be seen as in round `number`."""
        marked = torch.zeros(len(ids), dtype=torch.bool)
        if self.rebuilt:
            marked[chosen(self.selection, ids, seed, number, self.strategy.group_of)] = True
        return marked

    def turns(self, clients: Tensor, number: int) -> Iterator[Tensor]:
        """As the strategy has them; none where there is nobody."""
        return self.strategy.turns(clients, number) if len(clients) else iter(())

    @property
    def copies(self) -> int:
        """Of what clients keep: as it stands, of the best round, and before the round if that is rebuilt."""
        return 3 if self.rebuilt else 2

    def started(self, ids: Tensor, seed: int, dtype: torch.dtype) -> Pieces:
        """The same, with the server's state before the first round."""
        shared = {spec.name: spec.initial(seed, dtype) for spec in self.backbone.named(scope="shared", personal=False)}
        own = {s.name: s.initial_of_each(len(ids), seed, dtype) for s in self.backbone.named(personal=True)}
        self.strategy.start({**shared, **own}, ids, seed)
        return self


class DeviceMethod(FederatedMethod):
    """A cross-device method."""

    kind: ClassVar[Kind] = "federated"
    domains: ClassVar[Literal["one", "several", "any"]] = "one"

    def measured(self, config: Any, cut: AnySplit) -> dict[str, float]:
        if not (isinstance(config, ScaledItemsConfig) and config.is_open):
            return {}
        return facts_of(cut.parts[ONLY].training, config.batch_size, config.train_negatives)

    def settled(self, config: Any, facts: Mapping[str, float]) -> MethodConfig:
        factor = max(item_rate_factor(facts, config.move / config.local_epochs), config.slowest)
        found: MethodConfig = config.model_copy(update={"item_rate_factor": factor})
        return found

    def settled_in_words(self, config: Any, facts: Mapping[str, float]) -> str:
        found = f"item_rate_factor = {config.item_rate_factor:g}"
        return f"how fast it learns follows from the data: {found}, because {in_words(facts)}"

    @abstractmethod
    def pieces(self, config: Any, items: int) -> Pieces:
        """Choose the pieces for `items` items."""

    def _pieces(self, terms: Terms, items: int) -> Pieces:
        """With the view and the filters that were asked for."""
        pieces = self.pieces(terms.config, items)
        pieces = replace(pieces, view=terms.view or pieces.view, filters=terms.config.filters)
        pieces.check(self.name)
        pieces.filters.check(pieces.agreement(terms.number_type), self.name)
        return pieces

    def check(self, terms: Terms, cut: AnySplit) -> None:
        """Without drawing anything, nor what clients keep: either may be much."""
        pieces = self._pieces(terms, cut.items)
        require_memory(
            pieces.backbone,
            cut.users,
            terms.number_type,
            whole=pieces.procedure.dense,
            touched=touched_rows(cut.parts[ONLY].training, pieces.procedure, terms.rounds),
            copies=pieces.copies,
        )
        for spec in pieces.backbone.params:
            require_room_for(spec.name, spec.shape)
        pieces.strategy.require_room(cut.users, terms.number_type)

    def server(self, terms: Terms, roster: Roster) -> Server:
        pieces = self._pieces(terms, roster.items).started(roster.ids, terms.seed, terms.number_type)
        return Server(
            strategy=pieces.strategy,
            selection=pieces.selection,
            agreement=pieces.agreement(terms.number_type),
            ids=roster.ids,
            seed=terms.seed,
            view=pieces.view,
            views=pieces.views,
            rebuilt=pieces.rebuilt,
            filters=pieces.filters,
            first_tables=_first_tables(pieces.backbone, len(roster.ids), terms),
        )

    def gateway(self, terms: Terms, share: Share) -> People:
        data = share.training[ONLY]
        pieces = self._pieces(terms, data.items)
        return People(
            pieces.backbone,
            pieces.procedure,
            pieces.agreement(terms.number_type),
            data,
            terms.seed,
            pieces.filters,
            chunk=terms.chunk,
            rounds=terms.rounds,
            copies=pieces.copies,
        )

    def _with_state(self, terms: Terms, cut: AnySplit, state: State) -> Pieces:
        """The server's side as it was when `state` was kept."""
        data = cut.parts[ONLY].training
        pieces = self._pieces(terms, data.items).started(torch.from_numpy(data.ids), terms.seed, terms.number_type)
        own = {name.removeprefix("server."): value for name, value in state.items() if name.startswith("server.")}
        pieces.strategy.load(own)
        return pieces

    def scorer(self, terms: Terms, cut: AnySplit, state: State, number: int, domain: str = ONLY) -> Scorer:
        few = self._pieces(terms, cut.items).strategy.at_once

        def score(clients: Tensor) -> Tensor:
            some = torch.split(clients, few or max(len(clients), 1))
            return torch.cat([self.replay(terms, cut, state, number, part).scores() for part in some])

        return score

    def examined(
        self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge], state: State, number: int
    ) -> dict[str, Tally]:
        """By the way that rounds take: a chunk of clients at once, not their tables one by one."""
        pieces, gateway = self._with_state(terms, cut, state), self.gateway(terms, Share.of(cut))
        gateway.load(state)
        cards = {domain: judge.scorecard() for domain, judge in judges.items()}
        trains = pieces.trained_again(gateway.ids, terms.seed, number)
        for turn in pieces.turns(torch.nonzero(trains)[:, 0], number):
            asked = asked_of(cards, gateway.users_of(turn), gateway.ids)
            for _ in gateway.train(number, pieces.strategy.download(turn), turn, asked):
                pass
        for turn in pieces.turns(torch.nonzero(~trains)[:, 0], number):
            asked = asked_of(cards, gateway.users_of(turn), gateway.ids)
            gateway.score(pieces.strategy.serving(turn), asked)
        return {domain: card.tally() for domain, card in cards.items()}

    def replay(
        self, terms: Terms, cut: AnySplit, state: State, number: int, clients: Tensor, *, everybody: bool = False
    ) -> Replay:
        data, pieces = cut.parts[ONLY].training, self._with_state(terms, cut, state)
        gateway = self.gateway(terms, Share({ONLY: data.take(clients.numpy())}))
        gateway.load(of_clients(state, clients))
        trains = pieces.trained_again(torch.from_numpy(data.ids), terms.seed, number)[clients]
        if everybody:
            number += not pieces.rebuilt
            trains = torch.ones_like(trains)
        of = pieces.strategy
        download = of.download(clients) if bool(trains.any()) or pieces.rebuilt else of.serving(clients)
        return Replay.of(gateway, download.of(clients), number, trains)

    def newcomers(
        self, terms: Terms, cut: AnySplit, state: State, number: int, histories: Ragged, domain: str = ONLY
    ) -> Tensor:
        """Each trains on its own, round after round on what the server has, and sends nothing. All have one id, so that
        nobody's scores depend on who else is new.
        """
        known = cut.parts[ONLY].training
        pieces = self._with_state(terms, cut, state)
        few = pieces.strategy.at_once
        if few and len(histories) > few:
            some = np.array_split(np.arange(len(histories)), -(-len(histories) // few))
            return torch.cat([self.newcomers(terms, cut, state, number, histories.take(part), domain) for part in some])
        ids = np.full(len(histories), known.ids.max() + 1)
        data = TrainingData(known.items, histories, histories.unique(), ids)
        with said_of("somebody new"):
            check_negative_pool(data, self.negatives(terms.config))
        share = Share({ONLY: data})
        gateway, (download, tables) = self.gateway(terms, share), pieces.strategy.welcome(len(histories))
        if tables is not None:
            gateway.receive(tables)
        everybody = torch.arange(len(histories))
        personal = [spec.name for spec in pieces.backbone.named(personal=True)]
        remembers = (personal or pieces.backbone.named(kept=True)) and pieces.view != "reconstructed"
        last = number + (not pieces.rebuilt) if remembers else 0  # else nothing is left of earlier rounds
        for earlier in range(max(number - CATCH_UP, 0) + 1, last):
            for chunk in gateway.chunks(everybody.numpy()):
                cohort = gateway.train_chunk(earlier, download, chunk)
                download = download.with_own({name: cohort.params[name] for name in personal}, cohort.clients)
        trains = torch.full((len(histories),), pieces.rebuilt)
        return Replay.of(gateway, download, number, trains).scores()

    def item_vectors(self, terms: Terms, cut: AnySplit, state: State, domain: str = ONLY) -> Tensor:
        """The server's tables, side by side; where clients keep theirs, the means of these."""
        pieces = self._with_state(terms, cut, state)
        download, kept = pieces.strategy.welcome(1)
        tables = {**download.tables, **(kept.tables if kept else {})}
        shared = pieces.backbone.shared_vectors()
        if not shared:
            return super().item_vectors(terms, cut, state)
        return torch.cat([tables[name][0] for name in shared], dim=1)

    def upload_parts(self, terms: Terms, cut: AnySplit) -> dict[str, int]:
        kinds = {"item": "item tables", "net": "networks"}
        pieces = self._pieces(terms, cut.parts[ONLY].items)
        parts: dict[str, int] = {}
        for spec in pieces.backbone.named(scope="shared"):
            if spec.name in pieces.strategy.uploads:
                kind = kinds.get(spec.role, "other")
                parts[kind] = parts.get(kind, 0) + math.prod(spec.shape) * terms.number_type.itemsize
        return parts


def _first_tables(backbone: Backbone, clients: int, terms: Terms) -> int:
    """Bytes of the tables that every client receives once and then keeps."""
    kept = backbone.named(scope="shared", kept=True)
    tables = {spec.name: spec.initial(terms.seed, terms.number_type)[None] for spec in kept}
    return Push(tables, torch.zeros(clients, dtype=torch.int64)).nbytes if kept else 0
