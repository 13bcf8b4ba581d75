"""Who knows what in a federation: the training data of some clients, and what a server is told of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from confed.data.domain_split import DomainSplit
from confed.data.interactions import ONLY
from confed.data.matching import Matching
from confed.data.split import Split, TrainingData

AnySplit = Split | DomainSplit


@dataclass(frozen=True)
class Share:
    """The training data of some clients, by domain: people have one, companies one each. No held-out items."""

    training: Mapping[str, TrainingData]
    matching: Matching | None = None
    """Of companies: who is known to several."""
    numbers: Tensor | None = None
    """The ids of companies, where these are some of a federation's; else they are counted from 0."""

    @classmethod
    def of(cls, cut: AnySplit) -> Share:
        numbers = None if cut.numbers is None else torch.from_numpy(cut.numbers)
        return cls({domain: part.training for domain, part in cut.parts.items()}, cut.matching, numbers)

    @property
    def ids(self) -> Tensor:
        """Of the clients."""
        if self.matching is None:
            return torch.from_numpy(self.training[ONLY].ids)
        return torch.arange(len(self.training)) if self.numbers is None else self.numbers

    @property
    def people(self) -> int:
        """Whom several companies know."""
        return self.matching.people if self.matching else 0


@dataclass(frozen=True)
class Roster:
    """What a server knows of its clients beforehand; nothing of what they did."""

    ids: Tensor
    items: int
    """Of people's data, the number of items; of companies, of people whom several of them know."""
    known: Mapping[str, Tensor]
    """By company, the numbers of the people it shares with others."""

    @classmethod
    def of(cls, cut: AnySplit) -> Roster:
        """People are numbered in the data; companies in the order of their domains."""
        if cut.matching is None:
            training = cut.parts[ONLY].training
            return cls(torch.from_numpy(training.ids), training.items, {})
        known = {domain: torch.from_numpy(numbers) for domain, numbers in cut.matching.numbers.items()}
        return cls(torch.arange(len(known)), cut.matching.people, known)

    @classmethod
    def of_nobody(cls) -> Roster:
        """Of a federation that has no clients yet."""
        return cls(torch.arange(0), 1, {})
