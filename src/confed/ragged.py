"""A list of integer lists in two flat arrays: each client's items, without padding and without Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_LISTED_PER_QUESTION = 16
"""Numbers that can be listed in the time of one binary search."""


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

    def outside(self, row: Ints, rank: Ints, universe: int) -> Ints:
        """The `rank`-th number of 0 … universe − 1 (counting from 0) that is NOT in row `row`; rows are `unique`.

        Many questions are answered by writing the complement of every row down, few by searching.
        """
        if len(rank) * _LISTED_PER_QUESTION >= len(self) * universe:
            return self._outside_listed(row, rank, universe)
        return self._outside_searched(row, rank, universe)

    def _outside_listed(self, row: Ints, rank: Ints, universe: int) -> Ints:
        absent = np.ones(len(self) * universe, dtype=bool)
        absent[self.row_of * universe + self.values] = False
        first = np.arange(len(self)) * universe - self.offsets[:-1]
        answer: Ints = np.flatnonzero(absent)[first[row] + rank] - row * universe
        return answer

    def _outside_searched(self, row: Ints, rank: Ints, universe: int) -> Ints:
        """With sorted values e_0 < e_1 < …, as many lie below the answer as there are k with e_k − k ≤ rank.

        One binary search serves all rows at once: they are kept apart by multiples of universe + 1.
        """
        rows = self.row_of
        within = np.arange(len(self.values)) - self.offsets[rows]
        shifted = rows * (universe + 1) + self.values - within
        below = np.searchsorted(shifted, row * (universe + 1) + rank, side="right") - self.offsets[row]
        answer: Ints = rank + below
        return answer


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
