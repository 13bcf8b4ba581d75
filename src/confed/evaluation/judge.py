"""Whoever examines, seen from where clients are: it hands out cards for scores, which say what they found."""

from __future__ import annotations

from typing import Protocol

from confed.messages import Tally
from confed.scoring import Card


class Scored(Card, Protocol):
    """A card that says what it found."""

    def tally(self) -> Tally: ...


class Judge(Protocol):
    """An evaluator of the users of one domain, or of some of them."""

    def scorecard(self) -> Scored: ...
