"""Two domains in one place: who is whom, and what models of both have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from confed.data.domain_split import DomainSplit
from confed.errors import ConfedError
from confed.initial import Layers, started
from confed.models.base import JointModel, labelled_rows
from confed.models.binary_rows import dropout_factors
from confed.models.learner import Learned, Learner
from confed.random import Stream

Rows = tuple[Tensor, ...]
"""Columns side by side: users, items, and what else there is of a row."""


def persons(cut: DomainSplit) -> dict[str, Tensor]:
    """Per domain the person behind every user: the matched people first, then the users of each domain alone."""
    first = cut.matching.people
    found = {}
    for name, part in cut.parts.items():
        numbers = np.full(part.users, -1)
        numbers[cut.matching.users[name]] = cut.matching.numbers[name]
        alone = np.flatnonzero(numbers < 0)
        numbers[alone] = first + np.arange(len(alone))
        first += len(alone)
        found[name] = torch.from_numpy(numbers)
    return found


def in_both(cut: DomainSplit) -> dict[str, Tensor]:
    """Per domain, of two, the users whom the other one has too; in the same order of people."""
    matching = cut.matching
    return {name: torch.from_numpy(matching.users[name][np.argsort(matching.numbers[name])]) for name in cut.parts}


def two_of(cut: DomainSplit, method: str) -> tuple[str, str]:
    """The domains' names; an error if there are more, or one only."""
    if len(cut.parts) != 2:
        raise ConfedError(
            f"{method} is for two domains, this data has {len(cut.parts)} ({', '.join(cut.parts)}): give it one pair "
            "after another, as papers do, or take etl-f, which is for any number"
        )
    first, second = cut.parts
    return first, second


def shared_out(rows: Rows, step: int, steps: int) -> Rows:
    """The part of all rows that is for one of `steps` steps."""
    length = len(rows[0])
    first, last = step * length // steps, (step + 1) * length // steps
    return tuple(column[first:last] for column in rows)


def in_steps(rows: Mapping[str, Rows], size: int) -> Iterator[dict[str, Rows]]:
    """Rows of both domains, `size` a step together; every step has the same share of either."""
    steps = max(math.ceil(sum(len(of[0]) for of in rows.values()) / size), 1)
    for step in range(steps):
        yield {name: shared_out(of, step, steps) for name, of in rows.items()}


class TwoDomainModel(Learned, JointModel):
    """Named parameters of both domains, stepped by one Adam. `method` is who says so if there are not two."""

    def __init__(self, method: str, cut: DomainSplit, seed: int, dtype: str) -> None:
        self.names = two_of(cut, method)
        self.seed = seed
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.data = {name: part.training for name, part in cut.parts.items()}
        self.known = {name: torch.from_numpy(data.positives.lengths > 0) for name, data in self.data.items()}
        """Per domain, whether a user has anything to train on."""
        self.shared = in_both(cut)
        self.people = sum(part.users for part in cut.parts.values()) - cut.matching.people

    def begin(self, layers: Layers, learning_rate: float, weight_decay: float = 0.0) -> None:
        """Parameters, and the Adam that steps them; `weight_decay` is added to the gradient, as torch's does."""
        self.learner = Learner(started(self.seed, layers), learning_rate, self.dtype)
        self.learner.adam.param_groups[0]["weight_decay"] = weight_decay
        self.params = self.learner.params
        for value in self.params.values():
            value.requires_grad_()

    def linear(self, layer: str, values: Tensor) -> Tensor:
        """A layer with a bias, of `initial.linear_layer`."""
        return functional.linear(values, self.params[layer], self.params[f"{layer}_bias"])

    def kept(self, values: Tensor, dropout: float, draws: torch.Generator | None) -> Tensor:
        """What dropout leaves; all of it without `draws`."""
        return values if draws is None else values * dropout_factors(values.shape, dropout, draws, values.dtype)

    def labelled(self, name: str, negatives: int, number: int) -> Rows:
        """A domain's rows of epoch `number`: every positive, and so many sampled negatives for each."""
        draws, shuffle = (Stream.of(self.seed, f"{purpose} {name}", number) for purpose in ("negatives", "shuffle"))
        return labelled_rows(self.data[name], negatives, draws, shuffle, self.dtype)

    @property
    def users(self) -> int:
        return self.people

    @property
    def outcomes(self) -> int:
        return max(data.items for data in self.data.values())

    def other(self, name: str) -> str:
        return self.names[1 - self.names.index(name)]

    @cached_property
    def known_to_both(self) -> Tensor:
        """(people, 2): the users of those who have something to train on in both domains."""
        first, second = (self.shared[name] for name in self.names)
        both = self.known[self.names[0]][first] & self.known[self.names[1]][second]
        return torch.stack([first[both], second[both]], dim=1)

    def cold(self, name: str) -> tuple[Tensor, Tensor]:
        """Who has nothing in this domain's training data but something in the other's: the users here, and there."""
        here, there = self.shared[name], self.shared[self.other(name)]
        new = ~self.known[name][here] & self.known[self.other(name)][there]
        return here[new], there[new]
