"""An examiner that ranks nothing and keeps the scores."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from confed.data.shares import AnySplit
from confed.messages import Tally


class Card:
    """Of one examination."""

    def __init__(self, users: int, items: int) -> None:
        self.clients = torch.arange(users)
        self.scores = torch.full((users, items), torch.nan, dtype=torch.float64)

    def add(self, clients: Tensor, logits: Tensor) -> None:
        self.scores[clients] = logits.double()

    @property
    def is_full(self) -> bool:
        return not bool(torch.isnan(self.scores).any())

    def tally(self) -> Tally:
        return Tally({}, {}, {})


class Recorder:
    """Hands out cards and keeps them."""

    def __init__(self, users: int, items: int) -> None:
        self.users = users
        self.items = items
        self.cards: list[Card] = []

    def scorecard(self) -> Card:
        """A new one, unless some users have not been scored on the last: they are, turn by turn."""
        if not self.cards or self.cards[-1].is_full:
            self.cards.append(Card(self.users, self.items))
        return self.cards[-1]

    @property
    def scores(self) -> Tensor:
        """(users, items) of the last examination."""
        return self.cards[-1].scores

    @classmethod
    def of(cls, cut: AnySplit) -> Mapping[str, Recorder]:
        """One for every domain."""
        return {domain: cls(part.users, part.items) for domain, part in cut.parts.items()}
