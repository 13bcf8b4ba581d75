"""What the server makes of the uploads, and who receives what."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from confed.messages import Download, Field, Needs, Over, Push
from confed.server.uploads import OpenUploads, Uploads
from confed.stateful import Stateful

Given = TypeVar("Given", Uploads, OpenUploads)
"""What a strategy is given to aggregate, by what it needs."""


class Strategy(Stateful, Generic[Given]):
    """Holds the server's state between rounds."""

    needs: ClassVar[Needs]
    """Whether sums over clients are enough (then secure aggregation can serve it, and it gets `Uploads`, which know no
    single client) or single clients are looked at (`OpenUploads`)."""
    plan: Mapping[str, Over]
    """What is averaged, and over whom."""
    uploads: frozenset[str]
    """The names a client sends, and no others; `loss`, which the log has, is always one of them."""
    side: Mapping[str, Field] = MappingProxyType({})
    """What a download may hold beside the shared parameters."""

    @abstractmethod
    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        """Take over the common initial value of the shared parameters, and the clients' ids: what the server has of
        each client (`Download.table_of`, say) is in their order.
        """

    @abstractmethod
    def download(self) -> Download:
        """What clients receive at the start of the next round, and are scored with under the `global` view."""

    @abstractmethod
    def aggregate(self, uploads: Given, number: int) -> None:
        """Make the next server state, at the end of round `number`."""

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """What so many clients receive who were not there before: what others would, and tables to begin with where
        clients keep them. All of them get the same.
        """
        of = self.download()
        return Download(of.tables, torch.zeros(newcomers, dtype=torch.int64), of.side), None

    def push(self) -> Push | None:
        """What the last aggregation gives to clients who keep their tables."""
        return None

    def notes(self) -> dict[str, Any]:
        """What the last aggregation did, for the log; plain JSON."""
        return {}


AnyStrategy = Strategy[Uploads] | Strategy[OpenUploads]
