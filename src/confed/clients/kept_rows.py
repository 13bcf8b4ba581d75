"""A table that every client keeps for itself, of which only the rows that ever changed are stored.

All clients begin with the same table, and touch a small part of it in a round. A row that was never touched is what it
was at the start, times what decay has made of everything since: one number a client. Where a row that changed lies is
told by a number for every client and item: of rows of d numbers in float32 a d-th of what whole tables would take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Condition

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.compiled import compiled
from confed.errors import ConfedError
from confed.room import require_room

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Slots = NDArray[np.int32]

_GROWTH = 1.5
_MOST = 2**31 - 1
_NEVER = -1
PLACE_BYTES = 4
"""Of a client and an item: where its row lies."""


class KeptRows:
    """The tables (items, d) of some clients. Threads may read and write at once, each of its own clients."""

    def __init__(self, start: Tensor, clients: int) -> None:
        self.start = start
        self.scale = torch.ones(clients, dtype=torch.float64)
        """What decay has made of rows that never changed."""
        self._slots = np.full((clients, len(start)), _NEVER, dtype=np.int32)
        self._rows = start.numpy()[:0].copy()
        self._used = 0
        self._writers = 0
        self._turn = Condition()

    def read(self, clients: Tensor, index: Tensor) -> Tensor:
        """Rows `index` (clients, n); of padding, which is no item, zeros."""
        found = self.start.new_empty(*index.shape, self.start.shape[1])
        places, scale = clients.numpy(), self.scale.numpy()
        _read(self._slots, self._rows, self.start.numpy(), scale, places, index.numpy(), found.numpy())
        return found

    def whole(self, clients: Tensor) -> Tensor:
        """(clients, items, d)."""
        return self.read(clients, torch.arange(len(self.start)).expand(len(clients), -1).contiguous())

    def write(self, clients: Tensor, index: Tensor, rows: Tensor) -> None:
        """Replace rows `index` (clients, n), of a client each once; padding is passed over."""
        places, items = clients.numpy(), index.numpy()
        with self._writing(_count_new(self._slots, places, items)) as first:
            _write(self._slots, self._rows, places, items, rows.contiguous().numpy(), first)

    def clear(self) -> None:
        """Everybody has the table that all began with."""
        with self._writing(0):
            self.scale.fill_(1.0)
            self._slots.fill(_NEVER)
            self._used = 0

    def decay(self, clients: Tensor, factors: Tensor) -> None:
        """Multiply whole tables, each by its client's factor."""
        with self._writing(0):
            self.scale[clients] *= factors
            _decay(self._slots, self._rows, clients.numpy(), factors.numpy())

    @contextmanager
    def _writing(self, new: int) -> Iterator[int]:
        """The first of so many new places. Rows move to a longer array only while nobody writes; who reads meanwhile
        reads the shorter one, in which its own clients are what they were.
        """
        with self._turn:
            first = self._used
            self._used += new
            self._turn.wait_for(lambda: self._used <= len(self._rows) or self._writers == 0)
            if self._used > len(self._rows):
                self._grow()
            self._writers += 1
        try:
            yield first
        finally:
            with self._turn:
                self._writers -= 1
                self._turn.notify_all()

    def _grow(self) -> None:
        size = max(self._used, min(int(_GROWTH * len(self._rows)), self._slots.size))
        if size > _MOST:
            raise ConfedError(f"clients keep {size:,} rows of tables, and can keep {_MOST:,}: use fewer users or items")
        both = (size + len(self._rows)) * self.start.shape[1] * self._rows.itemsize
        require_room(f"{size:,} rows of tables that clients keep", both, "use fewer users or items, or a smaller `dim`")
        longer = np.empty((size, self.start.shape[1]), self._rows.dtype)
        longer[: len(self._rows)] = self._rows
        self._rows = longer

    def state(self) -> dict[str, Tensor]:
        """Of every client how many rows changed; client after client which, in ascending order, and what they are."""
        count = (self._slots != _NEVER).sum(axis=1)
        items = np.empty(count.sum(), np.int32)
        rows = np.empty((len(items), self.start.shape[1]), self._rows.dtype)
        _collect(self._slots, self._rows, items, rows)
        arrays = {"count": count, "changed.items": items, "changed.rows": rows}
        return {"scale": self.scale.clone(), **{name: torch.from_numpy(array) for name, array in arrays.items()}}

    def load(self, state: Mapping[str, Tensor]) -> None:
        count, items, rows = (state[name] for name in ("count", "changed.items", "changed.rows"))
        owner = np.repeat(np.arange(len(self._slots)), count.numpy())
        if rows.shape != (len(owner), self.start.shape[1]) or items.shape != (len(owner),):
            raise ValueError(f"{len(owner)} rows that changed, and {tuple(rows.shape)} of {tuple(items.shape)} items")
        self.scale.copy_(state["scale"])
        self._slots.fill(_NEVER)
        self._slots[owner, items.numpy()] = np.arange(len(owner), dtype=np.int32)
        self._rows, self._used = rows.to(self.start.dtype).numpy().copy(), len(owner)


@compiled
def _read(slots: Slots, rows: Floats, start: Floats, scale: Floats, clients: Ints, index: Ints, found: Floats) -> None:
    for u in range(len(clients)):
        left = start.dtype.type(scale[clients[u]])
        for j in range(index.shape[1]):
            item = index[u, j]
            slot = slots[clients[u], item] if item < len(start) else _NEVER
            if slot != _NEVER:
                for c in range(start.shape[1]):
                    found[u, j, c] = rows[slot, c]
            elif item < len(start):
                for c in range(start.shape[1]):
                    found[u, j, c] = left * start[item, c]
            else:
                found[u, j, :] = 0.0


@compiled
def _count_new(slots: Slots, clients: Ints, index: Ints) -> int:
    new = 0
    for u in range(len(clients)):
        for j in range(index.shape[1]):
            item = index[u, j]
            if item < slots.shape[1] and slots[clients[u], item] == _NEVER:
                new += 1
    return new


@compiled
def _write(slots: Slots, rows: Floats, clients: Ints, index: Ints, values: Floats, first: int) -> None:
    """Rows that change for the first time lie from `first` on."""
    for u in range(len(clients)):
        for j in range(index.shape[1]):
            item = index[u, j]
            if item < slots.shape[1]:
                slot = slots[clients[u], item]
                if slot == _NEVER:
                    slots[clients[u], item] = slot = first
                    first += 1
                for c in range(rows.shape[1]):
                    rows[slot, c] = values[u, j, c]


@compiled
def _decay(slots: Slots, rows: Floats, clients: Ints, factors: Floats) -> None:
    for u in range(len(clients)):
        factor = rows.dtype.type(factors[u])
        for slot in slots[clients[u]]:
            if slot != _NEVER:
                for c in range(rows.shape[1]):
                    rows[slot, c] *= factor


@compiled
def _collect(slots: Slots, rows: Floats, items: Slots, found: Floats) -> None:
    place = 0
    for u in range(slots.shape[0]):
        for item in range(slots.shape[1]):
            if slots[u, item] != _NEVER:
                items[place] = item
                found[place] = rows[slots[u, item]]
                place += 1
