"""A client's rows of one round: its positives, q negatives for each, and the order in which batches take them.

Negatives are drawn once per round and reused by all its local epochs; rows are reshuffled every epoch (decisions.md
"Local training").
Everything is vectorised over the clients of a chunk and keyed by the client's id, so that neither chunks matter nor who
else is held in the same place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.procedures import Draw, Part
from confed.compiled import compiled
from confed.data.negatives import draw_negatives
from confed.data.split import TrainingData
from confed.messages.agreement import MOST_ROWS
from confed.privacy.virtual import draw_virtual
from confed.ragged import Ragged
from confed.random import Stream

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LocalRows:
    """The rows of a chunk of clients, longest first.

    A client touches only the items of its rows, so its tables shrink to these: `touched` (clients, t) lists the item
    of every table row, padded with the number of items; `local` (clients, rows) says which table row a row looks up.
    Where the objective reaches every item, tables stay `whole`, and a row looks up its item.
    """

    clients: Ints
    """Their places in data and store."""
    ids: Ints
    """What their draws depend on."""
    lengths: Ints
    local: Tensor
    labels: Tensor
    touched: Tensor
    positives: Ragged
    whole: bool = False

    def steps(self, batch_size: int, epochs: int) -> Ints:
        """(clients,): how many batches each client takes."""
        return epochs * -(-self.lengths // batch_size)

    def part(self, name: Part, stream: Stream) -> LocalRows:
        """One half of every client's rows, in which every other row of a random order lies; tables stay."""
        if name == "all":
            return self
        slots = stream.shuffled(self.ids, self.lengths)[:, int(name == "query") :: 2]
        chosen = torch.from_numpy(slots)
        return replace(
            self,
            lengths=(self.lengths + int(name == "support")) // 2,
            local=self.local.gather(1, chosen),
            labels=self.labels.gather(1, chosen),
        )

    def liked(self) -> Tensor:
        """(clients, table rows): which rows of a client's tables are those of its training positives."""
        return marked(self.positives, int(self.touched.max()) + 1).gather(1, self.touched)

    def order(self, epoch: int, stream: Stream) -> Ints:
        """(clients, rows): the order in which an epoch takes the rows; beyond a client's length is padding.

        Epochs are `MOST_ROWS` apart, so that their draws are.
        """
        return stream.shuffled(self.ids, self.lengths, base=epoch * MOST_ROWS)

    def batches(self, size: int, epoch: int, stream: Stream) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """(table rows, labels, weights), each (k, ≤ size): the first k clients are those that still have rows."""
        order = torch.from_numpy(self.order(epoch, stream))
        lengths = torch.from_numpy(self.lengths)
        for start in range(0, order.shape[1], size):
            active = int((self.lengths > start).sum())
            slots = order[:active, start : start + size]
            valid = (torch.arange(slots.shape[1]) + start) < lengths[:active, None]
            counts = valid.sum(dim=1, keepdim=True)
            weights = valid.to(self.labels.dtype) / counts
            yield self.local[:active].gather(1, slots), self.labels[:active].gather(1, slots), weights


def marked(positives: Ragged, items: int) -> Tensor:
    """(clients, items): which items are a client's training positives."""
    mask = torch.zeros(len(positives.lengths), items, dtype=torch.bool)
    mask[torch.from_numpy(positives.row_of), torch.from_numpy(positives.values)] = True
    return mask


def draw_rows(
    data: TrainingData,
    clients: Ints,
    negatives: int,
    stream: Stream,
    dtype: torch.dtype,
    *,
    draw: Draw = "each",
    virtual: float = 0.0,
    whole: bool = False,
) -> LocalRows:
    """Positives and negatives of `clients` (reordered: longest first), on compact tables or on whole ones. Every
    positive has its negatives behind it.
    """
    clients = clients[np.argsort(-data.positives.lengths[clients], kind="stable")]
    positives = data.positives.take(clients)
    drawn = draw_negatives(data, clients, negatives, stream)
    lengths = positives.lengths * (1 + negatives)
    items = np.empty((len(clients), int(lengths.max(initial=0))), dtype=np.int64)
    labels = np.empty(items.shape, dtype=np.float32 if dtype == torch.float32 else np.float64)
    against = positives.values if draw == "each" else _any_of(positives, data.ids[clients], stream.child("positives"))
    _lay_out(positives.offsets, against, drawn, data.items, items, labels)
    if virtual:
        added, coins = draw_virtual(data, clients, virtual, stream.child("virtual"))
        items = _beside(items, lengths, added.values, added.lengths, data.items)
        labels = _beside(labels, lengths, coins, added.lengths, 0)
        lengths = lengths + added.lengths
    local, touched = _in_place(items, data.items) if whole else compact(items, data.items)
    return LocalRows(
        clients=clients,
        ids=data.ids[clients],
        lengths=lengths,
        local=torch.from_numpy(local),
        labels=torch.from_numpy(labels),
        touched=torch.from_numpy(touched),
        positives=positives,
        whole=whole,
    )


def _any_of(positives: Ragged, ids: Ints, stream: Stream) -> Ints:
    """As many of each client's positives as it has, with replacement."""
    row, starts = positives.row_of, positives.offsets[:-1]
    slot = np.arange(len(row)) - starts[row]
    chosen: Ints = positives.values[starts[row] + stream.integers(ids[row], slot, positives.lengths[row])]
    return chosen


@compiled
def _lay_out(
    offsets: Ints, positives: Ints, drawn: Ints, padding: int, items: Ints, labels: NDArray[np.floating]
) -> None:
    """Each client's positives, every one with the negatives drawn for it behind it, as a row of `items`."""
    for u in range(len(items)):
        place = 0
        for n in range(offsets[u], offsets[u + 1]):
            items[u, place] = positives[n]
            labels[u, place] = 1.0
            for k in range(drawn.shape[1]):
                items[u, place + 1 + k] = drawn[n, k]
                labels[u, place + 1 + k] = 0.0
            place += 1 + drawn.shape[1]
        items[u, place:] = padding
        labels[u, place:] = 0.0


def _beside(table: NDArray[Any], lengths: Ints, added: NDArray[Any], counts: Ints, padding: int) -> NDArray[Any]:
    """`table` (clients, n), of whose rows `lengths` are real, with `counts` values appended to each real part."""
    ends = lengths + counts
    wider = np.full((len(table), int(ends.max(initial=0))), padding, dtype=table.dtype)
    column = np.arange(wider.shape[1])
    wider[column < lengths[:, None]] = table[np.arange(table.shape[1]) < lengths[:, None]]
    wider[(column >= lengths[:, None]) & (column < ends[:, None])] = added
    return wider


def _in_place(items: Ints, universe: int) -> tuple[Ints, Ints]:
    """`compact` that leaves items where they are: `touched` is all of them, for every client."""
    touched = np.broadcast_to(np.arange(universe), (len(items), universe))
    return np.where(items < universe, items, 0), touched.copy()


def compact(items: Ints, universe: int) -> tuple[Ints, Ints]:
    """Number the distinct items of each row of `items` (clients, n), in which the value `universe` is padding.

    Returns `local` (clients, n), the number of each item, and `touched` (clients, t), the item of each number.
    """
    clients, width = items.shape
    local = np.empty_like(items)
    touched = np.full((clients, min(width, universe)), universe, dtype=np.int64)
    longest = _number_distinct(items, universe, local, touched)
    return local, np.ascontiguousarray(touched[:, :longest])


@compiled
def _number_distinct(items: Ints, universe: int, local: Ints, touched: Ints) -> int:
    """Fill `local` and `touched` in the order of first appearance; the largest number of distinct items."""
    number = np.empty(universe, dtype=np.int64)
    longest = 0
    for u in range(len(items)):
        number[:] = -1
        found = 0
        for j in range(items.shape[1]):
            item = items[u, j]
            if item == universe:
                local[u, j] = 0
                continue
            if number[item] < 0:
                number[item] = found
                touched[u, found] = item
                found += 1
            local[u, j] = number[item]
        longest = max(longest, found)
    return longest
