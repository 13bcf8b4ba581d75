"""Is one method better than another? A paired test over users, with seeds averaged first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """Mean difference per user with a 95 % interval, and the probability of one as large by chance alone."""

    mean: float
    low: float
    high: float
    p: float


def paired(one: Sequence[Floats], other: Sequence[Floats], draws: int = 10_000, seed: int = 0) -> Difference:
    """`one` − `other`, each a list over seeds of a metric per user, in the same order of users.

    The unit is the user: its difference is averaged over seeds. The interval is a bootstrap over users; p comes from
    flipping the signs of whole users, which is exact under the hypothesis that the two methods are interchangeable.
    Both speak of these seeds: what a run owes to luck that all its users share shows in the spread between seeds only.
    """
    difference = np.mean(one, axis=0) - np.mean(other, axis=0)
    rng = np.random.default_rng(seed)
    users, mean = len(difference), float(difference.mean())
    again = np.array([difference[rng.integers(0, users, users)].mean() for _ in range(draws)])
    flipped = np.array([(difference * rng.choice((-1.0, 1.0), users)).mean() for _ in range(draws)])
    low, high = np.percentile(again, [2.5, 97.5])
    p = (1 + int((np.abs(flipped) >= abs(mean) - 1e-15).sum())) / (1 + draws)
    return Difference(mean, float(low), float(high), p)
