"""Ranking metrics of one held-out item, with exact treatment of ties (decisions.md "Metrics").

A ranking is stored as two numbers per user: how many candidates score strictly above the held-out item, and how many
tie with it. Every metric at every K follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

METRICS = ("hr", "ndcg", "mrr", "recall", "precision")


@dataclass(frozen=True)
class Ranks:
    """Per user: candidates above the held-out item, and candidates equal to it. `above` < 0: never ranked."""

    above: Ints
    equal: Ints

    @classmethod
    def unknown(cls, cases: int | tuple[int, ...]) -> Ranks:
        """Of cases that nobody has ranked yet."""
        return cls(np.full(cases, -1, dtype=np.int64), np.zeros(cases, dtype=np.int64))

    def write(self, rows: Ints, target: Tensor, others: Tensor) -> None:
        """Rank the scores `target` (n, 1) of the held-out items among `others` (n, candidates)."""
        above = (others > target).sum(dim=1, dtype=torch.int32)
        equal = (others == target).sum(dim=1, dtype=torch.int32)
        unranked = torch.isinf(target[:, 0])
        self.above[rows] = above.masked_fill(unranked, -1).numpy()
        self.equal[rows] = equal.masked_fill(unranked, 0).numpy()

    def per_user(self, metric: str, k: int, ties: Literal["lost", "expected"]) -> Floats:
        """The metric of every user, between 0 and 1.

        A tie of e candidates leaves the ranks above + 1 … above + e + 1 equally likely: their gains are averaged.
        A lost tie takes the last of them.
        """
        cumulative: Floats = np.concatenate([[0.0], np.cumsum(_gain(metric, k))])
        last = np.minimum(self.above + self.equal + 1, k)
        if ties == "lost":
            value = cumulative[last] - cumulative[np.minimum(self.above + self.equal, k)]
        else:
            value = (cumulative[last] - cumulative[np.minimum(self.above, k)]) / (self.equal + 1.0)
        return np.where(self.above < 0, 0.0, value)

    def report(self, cutoffs: Iterable[int], ties: Literal["lost", "expected"]) -> dict[str, float]:
        """Mean over users, in percent, of every metric at every cut-off."""
        return {
            f"{metric}@{k}": 100.0 * float(self.per_user(metric, k, ties).mean()) for k in cutoffs for metric in METRICS
        }


def _gain(metric: str, k: int) -> Floats:
    """What a hit at rank 1 … k is worth. With one relevant item recall is the hit rate."""
    rank = np.arange(1, k + 1, dtype=np.float64)
    if metric in ("hr", "recall"):
        return np.ones(k)
    if metric == "precision":
        return np.full(k, 1.0 / k)
    if metric == "ndcg":
        gain: Floats = 1.0 / np.log2(1.0 + rank)
        return gain
    if metric == "mrr":
        return 1.0 / rank
    raise ValueError(f"no metric {metric!r}")
