"""Who takes part in a round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confed.random import Stream

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """A fraction of the clients, drawn anew every round; 1 is everyone."""

    fraction: float = 1.0

    def participants(self, ids: Ints, seed: int, round_: int) -> Ints:
        """The places among `ids` of those who take part, ascending; at least one."""
        if self.fraction >= 1.0:
            return np.arange(len(ids))
        count = max(1, math.ceil(self.fraction * len(ids)))
        return np.sort(np.argsort(Stream.of(seed, "selection", round_).bits(ids), kind="stable")[:count])
