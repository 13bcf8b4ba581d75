"""The tiny data every method between companies is tested on: three domains, 24 people, 60 items each."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

from confed.data.domain_split import DomainSplit, split_domains
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.split import Split
from confed.data.synthetic_domains import synthetic_domains
from confed.protocol import WARM, Protocol

USERS, ITEMS = 24, 60
TINY_WARM = WARM.model_copy(update={"negatives": 15, "more_negatives": (20,), "cutoffs": (5, 10), "population": "all"})


@cache
def domains(overlap: float = 0.6) -> Domains:
    return synthetic_domains(
        domains=3,
        users=USERS,
        items=ITEMS,
        interactions_per_user=12,
        groups=3,
        categories=5,
        overlap=overlap,
        sparsity=0.6,
        seed=3,
    )


@cache
def cut(protocol: Protocol = TINY_WARM, seed: int = 0) -> DomainSplit:
    return split_domains(domains(), protocol, seed)


def cut_with_other_held_out_items() -> DomainSplit:
    """The same training items, but in every domain users have exchanged what is held out; so no item disappears."""
    changed = {}
    for name, part in domains().parts.items():
        of = cut().parts[name]
        assert isinstance(of, Split)
        new: dict[tuple[str, str], str] = {}
        for held in _exchanged(of):
            new |= {(of.user_ids[u], of.item_ids[old]): of.item_ids[item] for u, (old, item) in enumerate(held)}
        rows = [(user, new.get((user, item), item), *rest) for user, item, *rest in part.frame.iter_rows()]
        frame = pl.DataFrame(rows, schema=part.frame.schema, orient="row")
        changed[name] = Interactions(frame, time="real", name=name)
    return split_domains(Domains(changed), TINY_WARM, 0)


def _exchanged(of: Split) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """For validation and test, the old and the new item of every user: none that the user has, and not one twice."""
    rng = np.random.default_rng(0)
    has = np.array([[item in of.seen[user] for item in range(of.items)] for user in range(of.users)])
    while True:
        drawn = []
        for held in (of.validation, of.test):
            order = linear_sum_assignment(100.0 * has[:, held] + rng.random((of.users, of.users)))[1]
            drawn.append(held[order])
        mine = has[np.arange(of.users), drawn[0]] | has[np.arange(of.users), drawn[1]]
        if not mine.any() and not (drawn[0] == drawn[1]).any():
            first, second = (list(zip(*pair, strict=True)) for pair in ((of.validation, drawn[0]), (of.test, drawn[1])))
            return first, second
