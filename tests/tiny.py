"""The tiny data every conformance test runs on: 24 users, 60 items."""

from __future__ import annotations

from functools import cache

from confed.data import Interactions, synthetic
from confed.data.split import Split, split
from confed.evaluation.protocol import PAPER, STRICT, Protocol

USERS, ITEMS = 24, 60
FEW = {"negatives": 15, "cutoffs": (5, 10)}
TINY_STRICT = STRICT.model_copy(update=FEW)
TINY_PAPER = PAPER.model_copy(update=FEW)


@cache
def interactions() -> Interactions:
    return synthetic(users=USERS, items=ITEMS, interactions_per_user=15, groups=3, categories=5, seed=3)


@cache
def cut(protocol: Protocol = TINY_STRICT, seed: int = 0) -> Split:
    return split(interactions(), protocol, seed)
