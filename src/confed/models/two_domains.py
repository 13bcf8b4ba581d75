"""Two domains in one place: who is whom."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from confed.data.domain_split import DomainSplit
from confed.errors import ConfedError


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


def two_of(cut: DomainSplit, method: str) -> tuple[str, str]:
    """The domains' names; an error if there are more, or one only."""
    if len(cut.parts) != 2:
        raise ConfedError(
            f"{method} is for two domains, this data has {len(cut.parts)} ({', '.join(cut.parts)}): give it one pair "
            "after another, as papers do, or take etl-f, which is for any number"
        )
    first, second = cut.parts
    return first, second
