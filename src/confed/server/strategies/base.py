"""What the server makes of the uploads, and who receives what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, final

from torch import Tensor

from confed.messages import Download, Field, Over, Push
from confed.server.uploads import KeptUploads, SummedUploads, Uploads


class Strategy(ABC):
    """Holds the server's state between rounds."""

    needs: ClassVar[Literal["sum", "individual"]]
    """Whether sums over clients are enough (then secure aggregation can serve it) or single clients are looked at."""
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

    @property
    @abstractmethod
    def shared(self) -> Mapping[str, Tensor]:
        """The server's own version of every tensor of the plan, against which changes are summed."""

    @final
    def collector(self, clients: Tensor) -> Uploads:
        """An empty collection for the uploads of one round, in which `clients` take part, by their ids.

        Where sums are enough, a strategy gets sums: no single client can be asked of them.
        """
        if self.needs == "sum":
            return SummedUploads(self.plan, self.shared, clients)
        return KeptUploads(self.shared, clients)

    @abstractmethod
    def aggregate(self, uploads: Uploads, number: int) -> None:
        """Make the next server state, at the end of round `number`."""

    def push(self) -> Push | None:
        """What the last aggregation gives to clients who keep their tables."""
        return None

    def notes(self) -> dict[str, Any]:
        """What the last aggregation did, for the log; plain JSON."""
        return {}

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Everything the next round depends on."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
