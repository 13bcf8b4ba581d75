"""The tiny data every conformance test runs on: 24 users, 60 items."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from confed.data.interactions import Interactions
from confed.data.split import Ints, Split, split
from confed.data.synthetic import synthetic
from confed.protocol import PAPER, STRICT, Protocol

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


def cut_with_other_held_out_items() -> Split:
    """The tiny data with every user's last two items exchanged for others, cut anew from the interactions."""
    data, reference = interactions(), cut()
    frame = data.frame.with_columns(row=np.arange(len(data)))
    held_out = {(u, i) for u in range(USERS) for i in (int(reference.validation[u]), int(reference.test[u]))}
    rows = []
    for user, item, line in zip(data.user_index, data.item_index, frame.iter_rows(), strict=True):
        others = [i for i in range(ITEMS) if i not in reference.seen[user]]
        is_test = int(item) == int(reference.test[user])
        name = data.items[others[is_test]] if (int(user), int(item)) in held_out else line[1]
        rows.append((line[0], name, *line[2:4]))
    changed = pl.DataFrame(rows, schema=data.frame.schema, orient="row")
    return split(Interactions(changed, time="real"), TINY_STRICT, 0)


def with_ids(ids: Ints) -> Split:
    """The tiny data, of users with these ids."""
    return replace(cut(), training=replace(cut().training, numbers=ids))
