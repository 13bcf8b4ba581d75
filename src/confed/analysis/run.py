"""A finished run as analyses and reports see it. `confed.Run` is one; whatever offers the same can be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from confed.clients.replay import Replay
from confed.models.silo import Silo
from confed.protocol import Protocol as Evaluation
from confed.ragged import Ragged


class Offered(Protocol):
    """An item that is recommended."""

    @property
    def item(self) -> str: ...

    @property
    def title(self) -> str | None: ...


class Told(Protocol):
    """The settings of a run."""

    @property
    def method(self) -> str: ...

    @property
    def protocol(self) -> Evaluation: ...

    def config(self) -> Any: ...

    def without_source(self) -> Told: ...

    def to_toml(self) -> str: ...


class Run(Protocol):
    """See `confed.runs.finished.Run`."""

    @property
    def settings(self) -> Told: ...

    @property
    def summary(self) -> dict[str, Any]: ...

    @property
    def lines(self) -> list[dict[str, Any]]: ...

    @property
    def domains(self) -> tuple[str, ...]: ...

    @property
    def state_round(self) -> int: ...

    @property
    def is_rebuilt(self) -> bool: ...

    def best_state(self) -> dict[str, Tensor]: ...

    def replay(self, users: Sequence[int], *, everybody: bool = False) -> Replay | None: ...

    def companies(self, *, start: bool = False) -> Mapping[str, Silo]: ...

    def user_ids(self, domain: str | None = None) -> list[str]: ...

    def item_names(self, domain: str | None = None) -> list[str]: ...

    def training_items(self, domain: str | None = None) -> Ragged: ...

    def recommend(
        self, user: str | int | None = None, k: int = 10, *, domain: str | None = None
    ) -> Sequence[Offered]: ...
