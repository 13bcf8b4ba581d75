"""What can be written down and taken up again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor


class Stateful(ABC):
    """Has a state, by name."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """All that the next round depends on, as it stands: not in copies."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""


class Served(Stateful):
    """Scores somebody, by less than its state."""

    @abstractmethod
    def serving_state(self) -> dict[str, Tensor]:
        """What scores depend on, in copies."""

    @abstractmethod
    def load_serving(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `serving_state`."""
