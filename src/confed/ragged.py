"""A list of integer lists in two flat arrays: each client's items, without padding and without Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Row r is `values[offsets[r]:offsets[r + 1]]`."""

    offsets: Ints
    values: Ints

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> Ragged:
        arrays = [np.asarray(row, dtype=np.int64) for row in rows]
        lengths = np.array([len(a) for a in arrays], dtype=np.int64)
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
        return cls(_offsets(lengths), values)

    @classmethod
    def group(cls, row: Ints, values: Ints, rows: int) -> Ragged:
        """Collect `values` by their `row`, keeping their order within each row."""
        order = np.argsort(row, kind="stable")
        return cls(_offsets(np.bincount(row, minlength=rows)), values[order])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def row_of(self) -> Ints:
        """The row of every value."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: Ints) -> Ragged:
        """The rows asked for, in that order."""
        lengths = self.lengths[rows]
        offsets = _offsets(lengths)
        source = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Ragged(offsets, self.values[source])

    def unique(self) -> Ragged:
        """Each row sorted and without repetitions."""
        order = np.lexsort((self.values, self.row_of))
        values, rows = self.values[order], self.row_of
        fresh = np.ones(len(values), dtype=bool)
        fresh[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
        return Ragged(_offsets(np.bincount(rows[fresh], minlength=len(self))), values[fresh])

    def outside(self, row: Ints, rank: Ints) -> Ints:
        """The `rank`-th number from 0 (counting from 0) that is NOT in row `row`; rows are `unique`."""
        answer = np.empty_like(rank)
        _outside(self.offsets, self.values, row, rank, answer)
        return answer


@compiled
def _outside(offsets: Ints, values: Ints, row: Ints, rank: Ints, answer: Ints) -> None:
    """With sorted values e_0 < e_1 < …, as many lie below the answer as there are k with e_k − k ≤ rank."""
    for n in range(len(rank)):
        first = offsets[row[n]]
        below, left = 0, offsets[row[n] + 1] - first
        while left > 0:
            half = left >> 1
            beyond = values[first + below + half] - (below + half) > rank[n]
            below = below if beyond else below + half + 1
            left = half if beyond else left - half - 1
        answer[n] = rank[n] + below


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
