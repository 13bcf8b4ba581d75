"""What a run drives, wherever the mathematics happens: rounds, scores, and a state that can be saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from confed.protocol import View

Ints = NDArray[np.int64]
CardType = TypeVar("CardType")
"""What a trainer fills with scores: a scorecard, or one for every domain."""


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round, beside the scores."""

    loss: float | None
    participants: int
    upload_bytes: int = 0
    download_bytes: int = 0
    server: Mapping[str, Any] = field(default_factory=dict)
    """What the strategy noted; plain JSON."""


class Trainer(ABC, Generic[CardType]):
    """One model in training."""

    view: View
    """The view the method is judged by."""
    views: tuple[View, ...]
    """All views it can be scored under."""

    def upload_parts(self) -> dict[str, int]:
        """Bytes of the shared parameters that one client sends in a round: of item tables, of networks, of others; not
        of facts such as its loss, nor of a message's header. Of companies, the whole message of each.
        """
        return {}

    @abstractmethod
    def round(self, number: int, cards: Mapping[View, CardType]) -> RoundReport:
        """Train round `number` (from 1) and fill the scorecards that were handed in, one per view."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """All that the next round depends on."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""

    @abstractmethod
    def serving_state(self) -> dict[str, Tensor]:
        """What `serve` needs to score as the last round was scored."""

    @abstractmethod
    def serve(self, state: Mapping[str, Tensor], number: int, clients: Ints) -> Tensor:
        """(clients, items) logits of some clients as they stood in round `number`. Changes the trainer's state."""
