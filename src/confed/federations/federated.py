"""A round of federated learning, written once: for people and companies, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confed.errors import MessageError
from confed.federations.base import Federation
from confed.federations.site import Trained, both_tallies
from confed.messages import Agreement, Download, Push, Sums, Tally
from confed.privacy.filters import NO_FILTERS, Chain
from confed.protocol import View
from confed.seals import Sealed
from confed.server.selection import Selection, chosen
from confed.server.strategies import AnyStrategy
from confed.server.uploads import OpenUploads, Uploads
from confed.soundness import require_finite, unless
from confed.training import Round, Trainer

_CALMER = "lower `learning_rate`, or `upload_noise` where there is some"


@dataclass(frozen=True)
class Server:
    """The server's side of a federation. It knows its clients' ids, and nothing of their data."""

    strategy: AnyStrategy
    selection: Selection
    agreement: Agreement
    ids: Tensor
    seed: int
    view: View
    views: tuple[View, ...]
    rebuilt: bool = False
    """Whether a round has to be trained again to be served: its end replaces what it was scored with."""
    filters: Chain = NO_FILTERS
    prefix: str = "server."
    """Of the names of the server's tensors in a state."""
    first_tables: int = 0
    """Bytes of the tables that all clients receive once and then keep."""

    def download(self) -> Download:
        """What everybody would receive now, in one message."""
        return self.strategy.download(torch.arange(len(self.ids)))

    def participants(self, number: int) -> Tensor:
        """The places of those who take part in round `number`, if it were the next."""
        return chosen(self.selection, self.ids, self.seed, number, self.strategy.group_of)


@dataclass(frozen=True)
class _Turn:
    trained: Trained
    download_bytes: int


class Federated(Trainer):
    """Trains the clients of a federation."""

    def __init__(self, server: Server, federation: Federation) -> None:
        self.server = server
        self.federation = federation
        self.view, self.views = server.view, server.views
        self._serving: dict[str, Tensor] = {}
        self._start = server.strategy.state()

    def round(self, number: int, views: Collection[View] = ()) -> Round:
        strategy = self.server.strategy
        self._remember(before_round=True)
        clients = self.server.participants(number)
        local = "local" in views
        absent = self._examined(self._others(clients), number, strategy.download) if local else {}
        turns = strategy.turns(clients, number)
        taken = [self._turn(number, turn, examine=local, opens=not place) for place, turn in enumerate(turns)]
        trained = reduce(add, (turn.trained for turn in taken))
        strategy.finish(number)
        require_finite(strategy.state(), _CALMER)
        push = strategy.push()
        self.federation.push(push)
        found = {"local": both_tallies(absent, trained.tallies)} if local else {}
        tallies = {
            v: found[v] if v in found else self._examined(self._everybody(), number, strategy.serving) for v in views
        }
        self._remember(before_round=False)
        return Round(
            loss=trained.loss / len(clients),
            participants=len(clients),
            upload_bytes=trained.sums.nbytes,
            download_bytes=self._sent(number, taken, push),
            notes={**strategy.notes(), **trained.notes},
            tallies=tallies,
            place=self.federation.cost(),
        )

    def _turn(self, number: int, clients: Tensor, *, examine: bool, opens: bool) -> _Turn:
        """Some clients are served and train, and the server makes its next state of what they send."""
        strategy = self.server.strategy
        download = strategy.download(clients)
        trained = self.federation.train(number, download, clients, examine=examine, opens=opens)
        with unless(lambda: require_finite(_changes(trained.sums), _CALMER)):
            strategy.aggregate(self._uploads(trained.sums, download, clients), number)
        longer = self.server.filters.longer(self.server.agreement)
        told = replace(trained, sums=replace(trained.sums, of={}))  # the sums of many turns would take much room
        return _Turn(told, download.bytes_to(clients) + longer * len(clients))

    def _examined(self, clients: Tensor, number: int, served: Callable[[Tensor], Download]) -> dict[str, Tally]:
        """Where the held-out items of `clients` stand with what the server has for them now; as in training, some after
        others where that is much for each of them.
        """
        turns = self.server.strategy.turns(clients, number) if len(clients) else iter(())
        found = (self.federation.examine(served(turn), turn) for turn in turns)
        return reduce(both_tallies, found, {})

    def _everybody(self) -> Tensor:
        return torch.arange(len(self.server.ids))

    def _others(self, clients: Tensor) -> Tensor:
        everybody = self._everybody()
        return everybody[~torch.isin(everybody, clients)]

    def _uploads(self, sums: Sums, download: Download, clients: Tensor) -> Any:
        """What the strategy gets: by what it needs, sums alone, or answers about single clients too."""
        agreed = self.server.agreement
        if sums.participants != len(clients):
            raise MessageError(f"{sums.participants} clients sent something, {len(clients)} take part")
        given = self.server.filters.arrived(sums), agreed.plan, agreed.bases(download)
        if agreed.needs == "sum":
            return Uploads(*given)
        return OpenUploads(*given, self.server.ids[clients], self.federation)

    def _sent(self, number: int, turns: Sequence[_Turn], push: Push | None) -> int:
        """Bytes of all messages to clients."""
        first = self.server.first_tables if number == 1 else 0
        return first + sum(turn.download_bytes for turn in turns) + (push.nbytes if push else 0)

    def _remember(self, *, before_round: bool) -> None:
        """Keep the server's part of what serving takes: before the round where it is rebuilt, else after it."""
        if before_round == self.server.rebuilt:
            self._serving = self._own_state()

    def _own_state(self) -> dict[str, Tensor]:
        """Strategies make new tensors, or give copies of those they change, so that these stay as they are."""
        return {f"{self.server.prefix}{name}": value for name, value in self.server.strategy.state().items()}

    def state(self) -> dict[str, Tensor]:
        return {**self._own_state(), **self.federation.state()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        own, others = self._parts(state)
        self.server.strategy.load(own)
        self.federation.load(others)

    def _parts(self, state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The server's tensors, by the strategy's names, and its clients'."""
        prefix = self.server.prefix
        own = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        return own, {name: value for name, value in state.items() if not name.startswith(prefix)}

    def commit(self, where: Path) -> tuple[Sealed, ...]:
        return self.federation.commit(where)

    def restore(self, where: Path, sites: Sequence[Sealed] | None) -> None:
        if sites is None:
            self.server.strategy.load(self._start)
        self.federation.restore(where, sites)

    def repair(self) -> None:
        self.federation.repair()

    def serving_state(self) -> dict[str, Tensor]:
        """The server's part as it is: strategies make new tensors, or give copies of those they change."""
        return self._serving | self.federation.serving_state()


def _changes(sums: Sums) -> dict[str, Tensor]:
    return {name: part.changes for name, part in sums.of.items()}
