"""Whoever examines, seen from where clients are: it hands out cards for scores, which say what they found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from confed.messages import Tally
from confed.scoring import Card


class Scored(Card, Protocol):
    """A card that says what it found."""

    def tally(self) -> Tally: ...


class AskedOfSome:
    """A card that wants some only of those whom another wants, by their places; `ids` are those of all."""

    def __init__(self, card: Scored, clients: Tensor, ids: Tensor) -> None:
        self._card = card
        self.clients = card.clients[torch.isin(card.clients, clients)]
        self._ids = ids[self.clients]

    def add(self, clients: Tensor, logits: Tensor) -> None:
        self._card.add(clients, logits)

    def tally(self) -> Tally:
        return self._card.tally().of(self._ids)


def asked_of(cards: Mapping[str, Scored], users: Mapping[str, Tensor | None], ids: Tensor) -> dict[str, Scored]:
    """The cards, by domain, asking for the scores of some `users` alone; None is everybody."""
    known = {domain: some for domain, some in users.items() if domain in cards}
    return {
        domain: cards[domain] if some is None else AskedOfSome(cards[domain], some, ids)
        for domain, some in known.items()
    }


class Judge(Protocol):
    """An evaluator of the users of one domain, or of some of them."""

    def scorecard(self) -> Scored: ...
