"""The items against which a held-out item is ranked where not all of them are ranked (decisions.md "Candidates")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.data.split import Split
from confed.errors import ConfedError
from confed.protocol import Protocol
from confed.random import Stream
from confed.threads import in_parallel

Ints = NDArray[np.int64]
Items = NDArray[np.int32]
"""Millions of users have hundreds of millions of candidates: half the memory of int64."""

_AT_ONCE = 1 << 16
"""Candidates that one thread draws before the next take their turn."""


def draw_candidates(cut: Split, protocol: Protocol, seed: int, count: int | None = None) -> tuple[Items, Items]:
    """(users, count) for validation and for test, from the items a user never touched."""
    count = protocol.negatives if count is None else count
    if protocol.shared_candidates:
        both = _draw(cut, Stream.of(seed, "candidates/validation"), count)
        return both, both
    if protocol.candidates == "halves":
        drawn = _draw(cut, Stream.of(seed, "candidates"), 2 * count)
        return drawn[:, :count], drawn[:, count:]
    return (
        _draw(cut, Stream.of(seed, "candidates/validation"), count),
        _draw(cut, Stream.of(seed, "candidates/test"), count),
    )


def most_candidates(cut: Split, protocol: Protocol) -> int:
    """How many can be drawn for everybody."""
    return int(candidates_of_each(cut, protocol).min())


def candidates_of_each(cut: Split, protocol: Protocol) -> Ints:
    """(users,): how many can be drawn, from the items that each never touched."""
    split_in_two = protocol.candidates == "halves" and not protocol.shared_candidates
    return (cut.items - cut.seen.lengths) // (2 if split_in_two else 1)


def _draw(cut: Split, stream: Stream, count: int) -> Items:
    pool = cut.items - cut.seen.lengths
    if (pool < count).any():
        user = int(np.argmin(pool))
        raise ConfedError(
            f"user {cut.user_ids[user]!r} never touched {pool[user]} of {cut.items} items, but {count} sampled "
            f"candidates are asked for: lower `negatives` (--set negatives={max(int(pool[user]) // 2, 1)})"
        )
    drawn = np.empty((cut.users, count), dtype=np.int32)

    def draw(users: Ints) -> None:
        ranks = stream.distinct(cut.training.ids[users], np.zeros_like(users), pool[users], count)
        drawn[users] = cut.seen.outside(np.repeat(users, count), ranks.reshape(-1)).reshape(-1, count)

    for _ in in_parallel(draw, np.array_split(np.arange(cut.users), max(cut.users * count // _AT_ONCE, 1))):
        pass
    return drawn
