"""What the server makes of the uploads, and who receives what."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from confed.messages import Download, Field, Needs, Over, Push, Shape
from confed.protocol import View
from confed.random import Stream
from confed.server.uploads import OpenUploads, Uploads
from confed.stateful import Stateful

Given = TypeVar("Given", Uploads, OpenUploads)
"""What a strategy is given to aggregate, by what it needs."""


class Strategy(Stateful, Generic[Given]):
    """Holds the server's state between rounds."""

    _ids: Tensor
    _seed: int
    """Of those with turns."""

    needs: ClassVar[Needs]
    """Whether sums over clients are enough (then secure aggregation can serve it, and it gets `Uploads`, which know no
    single client) or single clients are looked at (`OpenUploads`)."""
    plan: Mapping[str, Over]
    """What is averaged, and over whom."""
    uploads: frozenset[str]
    """The names a client sends, and no others; `loss`, which the log has, is always one of them."""
    moves: ClassVar[bool] = False
    """Whether turns see what earlier ones of the same round made of the state, so that no round can be trained again
    from where it began."""
    side: Mapping[str, Field] = MappingProxyType({})
    """What a download may hold beside the shared parameters."""

    own: Mapping[str, Shape] = MappingProxyType({})
    """What a download may hold for single clients, beside parameters that are theirs."""

    several: frozenset[str] = frozenset()
    """Tables of which clients receive different versions."""
    at_once: int | None = None
    """Of how many clients the server makes what is theirs alone at a time; not said: of all."""
    view: ClassVar[View] = "global"
    """What the view is called of clients who are scored with what the server has for them."""

    @abstractmethod
    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        """Take over the common initial value of the shared parameters, of personal ones that of each client, and the
        clients' ids: what the server has of each client (`Download.table_of`, say) is in their order.
        """

    def turns(self, clients: Tensor, number: int) -> Iterator[Tensor]:
        """The clients at the places `clients`, in the order in which they take part in round `number`: those of one
        turn at once, and what they send is aggregated before the next. Where there are several, in an order drawn for
        the round.
        """
        if self.at_once is None:
            yield clients
            return
        drawn = Stream.of(self._seed, "turns", number).bits(self._ids[clients].numpy())
        yield from torch.split(clients[torch.from_numpy(drawn.argsort(kind="stable"))], self.at_once)

    def require_room(self, clients: int, dtype: torch.dtype) -> None:
        """Raise if what the server has of so many clients does not fit into memory."""

    @abstractmethod
    def download(self, clients: Tensor) -> Download:
        """What the clients at these places receive when their next turn begins. Others may find nothing in it."""

    def serving(self, clients: Tensor) -> Download:
        """What they are scored with between rounds; by default what they would receive."""
        return self.download(clients)

    @abstractmethod
    def aggregate(self, uploads: Given, number: int) -> None:
        """Make the next server state, at the end of a turn of round `number`."""

    def finish(self, number: int) -> None:
        """What is left to do when all turns of round `number` are over."""

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """What so many clients receive who were not there before: what others would, and tables to begin with where
        clients keep them. All of them get the same.
        """
        of = self.download(torch.arange(1))
        return Download(of.tables, torch.zeros(newcomers, dtype=torch.int64), of.side), None

    @property
    def group_of(self) -> Tensor | None:
        """(clients,): the group of each, by which clients may be selected; None where there are no groups."""
        return None

    def push(self) -> Push | None:
        """What the last aggregation gives to clients who keep their tables."""
        return None

    def notes(self) -> dict[str, Any]:
        """What the last aggregation did, for the log; plain JSON."""
        return {}


AnyStrategy = Strategy[Uploads] | Strategy[OpenUploads]
