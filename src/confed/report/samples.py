"""A few users, some of what they had, and what is recommended to them: examples, no measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from confed.analysis.run import Run

_SHARES = {"light": 0.1, "median": 0.5, "heavy": 0.9}
"""Which share of the users has fewer training items, roughly."""
_ITEMS = 5


@dataclass(frozen=True)
class Sample:
    """One user."""

    user: str
    kind: str
    """How much it has: `light`, `median` or `heavy`."""
    domain: str | None
    trained: int
    """How many items it trained on."""
    had: list[str]
    """The names of a few of them: the latest, where the data has an order."""
    recommended: list[str]


def samples(run: Run) -> Iterator[Sample]:
    """Three users by how many items they trained on; of several domains the median one of each."""
    if run.domains:
        return (_sample(run, "median", domain) for domain in run.domains)
    return (_sample(run, kind, None) for kind in _SHARES)


def _sample(run: Run, kind: str, domain: str | None) -> Sample:
    items = run.training_items(domain)
    user = _user(items.lengths, _SHARES[kind])
    name, names = run.user_ids(domain)[user], run.item_names(domain)
    return Sample(
        user=name,
        kind=kind,
        domain=domain,
        trained=int(items.lengths[user]),
        had=[names[item] for item in items[user][-_ITEMS:]],
        recommended=[one.title or one.item for one in run.recommend(name, _ITEMS, domain=domain)],
    )


def _user(lengths: np.ndarray[tuple[int], np.dtype[np.int64]], share: float) -> int:
    """Who stands there among those who trained on anything, the one with the fewest items first."""
    order = np.argsort(lengths, kind="stable")
    known = order[lengths[order] > 0]
    return int(known[int(share * (len(known) - 1))])
