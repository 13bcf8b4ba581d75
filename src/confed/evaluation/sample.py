"""Who is examined in every round, where that is not everybody: those whose hashes are the least.

Whoever knows all ids finds the largest hash that still counts, and needs to tell others no more than that: a site sees
of its own users who is examined.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from confed.data.shares import AnySplit
from confed.random import Stream

Ints = NDArray[np.int64]
Sample = Mapping[str, int]
"""By domain: the largest hash of those who are examined."""


def sample_of(cut: AnySplit, seed: int, most: int) -> dict[str, int]:
    """So many users of every domain; all of them, where there are no more."""
    found = {}
    for domain, part in cut.parts.items():
        hashes = _hashes(part.training.ids, seed)
        found[domain] = int(np.partition(hashes, min(most, len(hashes)) - 1)[: min(most, len(hashes))].max())
    return found


def examined(ids: Ints, seed: int, largest: int) -> Ints:
    """The places of those among `ids` who are examined, ascending."""
    return np.flatnonzero(_hashes(ids, seed) <= np.uint64(largest))


def _hashes(ids: Ints, seed: int) -> NDArray[np.uint64]:
    return Stream.of(seed, "examined").bits(ids)
