"""A list of integer lists in two flat arrays: each client's items, without padding and without Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled

Ints = NDArray[np.int64]

_LISTED_PER_QUESTION = 16
"""Numbers that can be listed in the time of one binary search."""
_COUNTED = 64
"""Numbers that are counted or put in order one by one faster than they are searched or sorted."""


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

    @cached_property
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
        """Each row sorted and without repetitions; found once, however often it is asked for."""
        return self._distinct

    @cached_property
    def _distinct(self) -> Ragged:
        values, offsets = np.empty_like(self.values), np.zeros_like(self.offsets)
        _unique(self.offsets, self.values, offsets, values)
        return Ragged(offsets, values[: offsets[-1]].copy())

    def transposed(self, columns: int) -> Ragged:
        """By value, of which there are `columns`, the rows that have it."""
        return Ragged.group(self.values, self.row_of, columns)

    def outside(self, row: Ints, rank: Ints) -> Ints:
        """The `rank`-th number from 0 (counting from 0) that is NOT in row `row`; rows are `unique`."""
        answer = np.empty_like(rank)
        _outside(self.offsets, self.values, row, rank, answer)
        return answer


@compiled
def _unique(offsets: Ints, values: Ints, new_offsets: Ints, new_values: Ints) -> None:
    found = 0
    for r in range(len(offsets) - 1):
        ordered = _in_order(values[offsets[r] : offsets[r + 1]])
        for n in range(len(ordered)):
            if n == 0 or ordered[n] != ordered[n - 1]:
                new_values[found] = ordered[n]
                found += 1
        new_offsets[r + 1] = found


@compiled
def _in_order(values: Ints) -> Ints:
    """Ascending; a few are put in place one by one."""
    if len(values) > _COUNTED:
        return np.sort(values)
    ordered = values.copy()
    for n in range(1, len(ordered)):
        value, place = ordered[n], n
        while place > 0 and ordered[place - 1] > value:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = value
    return ordered


@compiled
def _outside(offsets: Ints, values: Ints, row: Ints, rank: Ints, answer: Ints) -> None:
    """Many questions in a row about the same row are answered from a list of its complement, few by searching."""
    listed = np.empty(rank.max() + 1 if len(rank) else 0, dtype=np.int64)
    start = 0
    while start < len(rank):
        stop, most = start, 0
        while stop < len(rank) and row[stop] == row[start]:
            most = max(most, rank[stop])
            stop += 1
        own = values[offsets[row[start]] : offsets[row[start] + 1]]
        if (stop - start) * _LISTED_PER_QUESTION > most:
            _list_complement(own, listed[: most + 1])
            for n in range(start, stop):
                answer[n] = listed[rank[n]]
        else:
            for n in range(start, stop):
                answer[n] = rank[n] + _below(own, rank[n])
        start = stop


@compiled
def _list_complement(ordered: Ints, listed: Ints) -> None:
    """The first numbers from 0 that are not among those given."""
    number = k = 0
    for n in range(len(listed)):
        while k < len(ordered) and ordered[k] == number:
            number += 1
            k += 1
        listed[n] = number
        number += 1


@compiled
def _below(ordered: Ints, rank: int) -> int:
    """How many of the ascending numbers e_0 < e_1 < … lie below the `rank`-th one that is none of them: as many as
    there are k with e_k − k ≤ rank.
    """
    found, left = 0, len(ordered)
    if left <= _COUNTED:
        for k in range(left):
            found += ordered[k] - k <= rank
        return found
    while left > 0:
        half = left >> 1
        beyond = ordered[found + half] - (found + half) > rank
        found = found if beyond else found + half + 1
        left = half if beyond else left - half - 1
    return found


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
