"""Terms that reach every row of an item table, whatever the batch.

Each gives its own gradient: products with whole tables are written out, and autograd, where it is used at all, sees a
few numbers per item or a sample of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from confed.random import Stream

Schedule = Literal["every-step", "once-per-round"]
"""Whether the gradient is taken anew at every step of the items, or once at the start of the round, times the steps."""


@dataclass(frozen=True)
class Categories:
    """Which category each item belongs to."""

    of: Tensor

    @cached_property
    def sizes(self) -> Tensor:
        """(items,): the number of items in each item's category."""
        return torch.bincount(self.of)[self.of]

    def partners(self, like: Tensor) -> Tensor:
        """(items, 1): how many others each item's category has, 1 where it has none."""
        return (self.sizes - 1).clamp(min=1)[:, None].to(like.dtype)

    def sums(self, rows: Tensor) -> Tensor:
        """For every item the sum of `rows` (…, items, d) over its category."""
        totals = rows.new_zeros(*rows.shape[:-2], int(self.of.max()) + 1, rows.shape[-1])
        return totals.index_add_(-2, self.of, rows).index_select(-2, self.of)


@dataclass(frozen=True)
class Whole:
    """What a dense term sees of some clients: their whole tables, and what the server sent beside them."""

    tables: Mapping[str, Tensor]
    """(clients, items, d)."""
    side: Mapping[str, Tensor]
    positives: Tensor
    """(clients, items): which items the client trains on as positives."""
    alike: Tensor
    """(clients,): those with the same number from 0 upwards have the same tables at this moment; −1 is nobody."""
    stream: Stream
    step: int
    """Random choices of this step are drawn from `stream` in slot `step`."""
    round: int = 1
    own: Mapping[str, Tensor] = field(default_factory=dict)
    """(clients, …): what the server sent to each of them alone."""

    def drawn(self, items: int, count: int) -> Tensor:
        """(count,) distinct items of `items`, in order, the same for all clients; all of them where they are fewer."""
        if count >= items:
            return torch.arange(items)
        bits = self.stream.bits(np.arange(items), self.step)
        return torch.from_numpy(np.sort(np.argpartition(bits, count)[:count]))


class DenseTerm(ABC):
    """One summand of the objective that is a function of whole item tables."""

    name: str

    @abstractmethod
    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        """(clients,) values, and each client's gradient by its tables, (clients, items, d) a table.

        A term that cannot be computed yet, because the server has not sent what it needs, gives zeros and no gradient.
        """


def unit_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of length 1, and the inverse of their lengths; a zero row stays zero and so does its inverse length."""
    lengths = rows.norm(dim=-1, keepdim=True)
    inverse = torch.where(lengths > 0, lengths.reciprocal(), torch.zeros_like(lengths))
    return rows * inverse, inverse


def through_unit(gradient: Tensor, unit: Tensor, inverse: Tensor) -> Tensor:
    """The gradient by rows, given that by their unit vectors: the part along the row does nothing."""
    along = (gradient * unit).sum(dim=-1, keepdim=True)
    return (gradient - along * unit) * inverse


def side_by_side(tables: Mapping[str, Tensor], names: tuple[str, ...]) -> Tensor:
    """(clients, items, Σ d): the tables named, as one."""
    return torch.cat([tables[name] for name in names], dim=2) if len(names) > 1 else tables[names[0]]


def apart(whole: Tensor, tables: Mapping[str, Tensor], names: tuple[str, ...]) -> dict[str, Tensor]:
    """The inverse of `side_by_side`, for a gradient of the same shape."""
    pieces: dict[str, Tensor] = {}
    start = 0
    for name in names:
        width = tables[name].shape[2]
        pieces[name] = whole[:, :, start : start + width]
        start += width
    return pieces
