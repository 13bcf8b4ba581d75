"""Histories of one length, drawn from what users have: so many items of each, without repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from confed.ragged import Ints, Ragged
from confed.random import Stream


@dataclass(frozen=True)
class History:
    """(n, length) items, and which of them are there."""

    items: Tensor
    there: Tensor

    def __getitem__(self, rows: Tensor) -> History:
        return History(self.items[rows], self.there[rows])

    def without(self, items: Ints) -> History:
        """Each history without one item."""
        return History(self.items, self.there & (self.items != torch.from_numpy(items)[:, None]))


def shuffled(rows: Ragged, stream: Stream) -> Ragged:
    """Every row in random order."""
    bits = stream.bits(np.arange(len(rows.values)))
    return Ragged(rows.offsets, rows.values[np.lexsort((bits, rows.row_of))])


def places(rows: Ragged) -> Ints:
    """The place of every value in its row."""
    found: Ints = np.arange(len(rows.values)) - rows.offsets[rows.row_of]
    return found


def cyclic(rows: Ragged, which: Ints, begin: Ints, length: int) -> History:
    """Of each row asked for `length` values from `begin` on, round and round but none twice; of row −1 nothing."""
    count = np.where(which >= 0, rows.lengths[which], 0)
    step = np.arange(length)
    there = step < count[:, None]
    place = (begin[:, None] + step) % np.maximum(count, 1)[:, None]
    items = np.zeros(there.shape, dtype=np.int64)
    items[there] = rows.values[(rows.offsets[which][:, None] + place)[there]]
    return History(torch.from_numpy(items), torch.from_numpy(there))


def paired(columns: Sequence[Tensor]) -> tuple[History, History]:
    """Two histories from their columns."""
    own, there, others, elsewhere = columns
    return History(own, there), History(others, elsewhere)
