"""Leave-one-out: each user's latest interaction is the test item, the one before it the validation item.

The rules (decisions.md "Splits") depend on the protocol: what counts as latest where time stamps tie or are
missing, whether repeated pairs are kept, and from which items training negatives may be drawn. The result keeps
training and held-out items apart: clients are built from `TrainingData` alone, the evaluator gets the `Split`.

Ties under `paper`: the published code takes, of several rows at the user's last instant, the one that stands first in
its file. Copies of a dataset differ in row order, so "first" must not mean the file's; and it must not mean the
smallest item id either (as it would after sorting), because MovieLens numbers popular films first:
with that rule the test items of MovieLens-100K, 44 % of which hang on ties, become popular ones and popularity alone
rises from HR@10 41.5 to 46.9, PFedRec from 71 to 75. Published files are in random order, so we break ties by a fixed
hash of (user, item): random with respect to popularity, the same for every copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled
from confed.data.interactions import ONLY, Interactions
from confed.errors import ConfedError
from confed.protocol import Protocol
from confed.ragged import Ragged
from confed.random import Stream

Ints = NDArray[np.int64]

FEWEST_ITEMS = 3
"""One item each to train on, to choose the round with, and to test."""


@dataclass(frozen=True)
class TrainingData:
    """All that clients may know: their training items, and which items they may not draw as negatives.

    A user's id enters randomness, its place in these arrays enters arithmetic: who is trained with whom, and where,
    changes nothing for anybody.
    """

    items: int
    positives: Ragged
    excluded: Ragged
    """Per user, sorted and distinct. Under `strict` these are the training items; `paper` adds the held-out ones."""
    numbers: Ints | None = None
    """The users' ids, where these are some of a federation's; a simulation's are 0 … users − 1."""

    @property
    def users(self) -> int:
        return len(self.positives)

    @cached_property
    def ids(self) -> Ints:
        """(users,): the same user has the same id wherever it is held."""
        return np.arange(self.users) if self.numbers is None else self.numbers

    def take(self, places: Ints) -> TrainingData:
        """Some of the users, by their places."""
        return TrainingData(self.items, self.positives.take(places), self.excluded.take(places), self.ids[places])


@dataclass(frozen=True)
class Cut(ABC):
    """A dataset of which something is held out."""

    training: TrainingData
    seen: Ragged
    """Per user, sorted and distinct: the items of all its splits. For the evaluator only."""
    user_ids: list[str]
    item_ids: list[str]

    @property
    def users(self) -> int:
        return self.training.users

    @property
    def items(self) -> int:
        return self.training.items

    @property
    @abstractmethod
    def tested(self) -> Ints:
        """The items that the test holds out, case by case."""

    @property
    def untrained(self) -> float:
        """The share of them that nobody trains on: no method knows anything about these."""
        if not len(self.tested):
            return 0.0
        return float(np.isin(self.tested, self.training.positives.values, invert=True).mean())


@dataclass(frozen=True)
class Split(Cut):
    """A dataset cut for one protocol and seed: of every user two items are held out, or of nobody any."""

    validation: Ints
    """(users,), or empty"""
    test: Ints
    matching: ClassVar[None] = None
    """Nobody is shared where there is one domain."""
    left_out: ClassVar[int] = 0
    numbers: ClassVar[None] = None

    @property
    def parts(self) -> Mapping[str, Split]:
        """By domain, as a `DomainSplit` has them."""
        return {ONLY: self}

    @property
    def tested(self) -> Ints:
        return self.test

    def take(self, places: Ints) -> Split:
        """What the holder of some users would have, who are given by their places."""
        return Split(
            training=self.training.take(places),
            seen=self.seen.take(places),
            user_ids=[self.user_ids[place] for place in places] if self.user_ids else [],  # sites know none
            item_ids=self.item_ids,
            validation=self.validation[places] if len(self.validation) else self.validation,
            test=self.test[places] if len(self.test) else self.test,
        )


def split(data: Interactions, protocol: Protocol, seed: int) -> Split:
    """Cut `data` for `protocol`; only seeded ties and random hold-outs depend on `seed`."""
    users, items = data.user_index, data.item_index
    oldest_first = np.lexsort((*_recency(data, protocol, seed), users))
    if protocol.dedupe:
        oldest_first = oldest_first[_last_of_each_pair(users[oldest_first], items[oldest_first], data.n_items)]
    history = Ragged.group(users[oldest_first], items[oldest_first], data.n_users)
    if not protocol.measures:
        return _whole(history, data)
    _require_enough(history, data)
    last = history.offsets[1:]
    held_out = np.zeros(len(history.values), dtype=bool)
    held_out[last - 1] = held_out[last - 2] = True
    positives = Ragged.group(history.row_of[~held_out], history.values[~held_out], data.n_users)
    seen = history.unique()
    excluded = seen if protocol.neg_pool == "unseen" else positives.unique()
    return Split(
        training=TrainingData(data.n_items, positives, excluded),
        validation=history.values[last - 2],
        test=history.values[last - 1],
        seen=seen,
        user_ids=data.users,
        item_ids=data.items,
    )


def _whole(history: Ragged, data: Interactions) -> Split:
    """All of it to train on."""
    nothing, own = np.zeros(0, dtype=np.int64), history.unique()
    return Split(TrainingData(data.n_items, history, own), own, data.users, data.items, nothing, nothing)


def _recency(data: Interactions, protocol: Protocol, seed: int) -> tuple[NDArray[Any], ...]:
    """Numbers per row that are larger the later the interaction counts; the last ones count most."""
    if data.time == "none":
        return _invented_recency(data, protocol, seed)
    time = data.frame["timestamp"].to_numpy()
    # A fixed order is the same for every seed and every copy of the data, because it depends on the pair alone.
    stream = Stream.of(0, "split/fixed") if protocol.split_ties == "fixed" else Stream.of(seed, "split/ties")
    return stream.bits(data.user_index, data.item_index), time


def _invented_recency(data: Interactions, protocol: Protocol, seed: int) -> tuple[NDArray[Any], ...]:
    """Data without time: a random order, or the one that the published loader invents (D-2)."""
    if protocol.pseudo_time == "random":
        # By pair, not by row: a pair that occurs ten times must not have ten chances to be the latest.
        return (Stream.of(seed, "split/hold-out").bits(data.user_index, data.item_index),)
    if data.pseudo_time == "file-order":
        return (np.arange(len(data)),)
    _, first_row, item = np.unique(data.item_index, return_index=True, return_inverse=True)
    return (first_row[item],)


@compiled
def _last_of_each_pair(users: Ints, items: Ints, n_items: int) -> NDArray[np.bool_]:
    """Whether a row is the latest of its user and item; rows come user by user, oldest first."""
    latest, later = np.empty(len(users), dtype=np.bool_), np.full(n_items, -1, dtype=np.int64)
    for row in range(len(users) - 1, -1, -1):
        latest[row] = later[items[row]] != users[row]
        later[items[row]] = users[row]
    return latest


def _require_enough(history: Ragged, data: Interactions) -> None:
    short = np.flatnonzero(history.lengths < FEWEST_ITEMS)
    if len(short):
        user = int(short[0])
        raise ConfedError(
            f"{data.name}: user {data.users[user]!r} has {history.lengths[user]} item(s), leave-one-out needs "
            f"{FEWEST_ITEMS} ({len(short)} of {data.n_users} users have too few): "
            f"drop such users with --min-interactions {FEWEST_ITEMS}"
        )
