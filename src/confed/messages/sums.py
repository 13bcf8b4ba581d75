"""Sums over clients that can be put together from parts: all that a server needs that looks at nobody.

What clients changed in a tensor, added up in float64, and the weight it has to be divided by. Parts are made wherever
clients are held, and their sum is the same however clients are spread: what rounding takes from an addition is kept
beside it. Companies, whose optimisers make much of the last bit, get the same means bit for bit from any places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from confed.messages.devices import Upload
from confed.messages.tables import HeldTables, PulledTables, Sent, TableRows, dense, weighted_sum
from confed.messages.wire import Schema, decode, encode
from confed.tensors import joined, part_of

Over = Literal["participants", "samples", "holders", "movers", "sum"]
"""What a tensor is averaged over: all who took part; all, weighted by their `samples`; for each row those who hold it,
or those who moved it, weighted by how far (the sum of absolute changes); or no average at all, the sum of all
changes."""
BY_ROW: frozenset[Over] = frozenset({"holders", "movers"})
"""Of these there is a weight for each row."""


@dataclass(frozen=True)
class PartialSum:
    """Of one tensor, in float64."""

    changes: Tensor
    weight: Tensor
    """One number, or one for each row (`BY_ROW`)."""
    rest: Tensor | None = None
    """What rounding took from `changes`; not said: nothing."""

    @classmethod
    def nothing(cls, like: Tensor, over: Over) -> PartialSum:
        weight = torch.zeros(len(like) if over in BY_ROW else (), dtype=torch.float64)
        return cls(torch.zeros_like(like, dtype=torch.float64), weight)

    def __add__(self, other: PartialSum) -> PartialSum:
        one, two = self.changes, other.changes
        total = one + two
        # Knuth's exact difference between a sum and its rounding.
        part = total - one
        rest = (one - (total - part)) + (two - part)
        for earlier in (self.rest, other.rest):
            if earlier is not None:
                rest += earlier
        return PartialSum(total, self.weight + other.weight, rest)

    def take(self, upload: Upload, name: str, over: Over, base: Tensor) -> None:
        """Add in place, and plainly, what the clients of one upload changed in one tensor, which was `base`: of many
        clients in one place, chunk after chunk, an exact sum would cost more than it is worth.
        """
        sent, weights = upload.tensors[name], _weights(upload, over)
        if over == "movers":
            self._take_moves(upload, sent, base)
            return
        self.weight.add_(_weight(upload, over, weights, len(base)))
        if isinstance(sent, TableRows | PulledTables):
            sent.add_changes(weights, self.changes)
            _add_bases(sent, weights, base, self.changes)
        else:
            self.changes.add_(_changes(upload, sent, weights, base))

    def _take_moves(self, upload: Upload, sent: Sent, base: Tensor) -> None:
        """Every client's rows count as much as it moved them."""
        if isinstance(sent, TableRows):
            sent.add_moves(self.changes, self.weight)
            return
        rows = slice(None) if upload.rows is None else upload.rows
        moves = dense(sent).double() - base[rows].double()
        sizes = moves.abs().sum(dim=2)
        self.changes[rows] += (sizes[:, :, None] * moves).sum(dim=0)
        self.weight[rows] += sizes.sum(dim=0)

    def tensors(self) -> dict[str, Tensor]:
        """By what they are, as they are sent."""
        rest = {} if self.rest is None else {"rest": self.rest}
        return {"changes": self.changes, "weight": self.weight, **rest}

    @property
    def total(self) -> Tensor:
        """All changes, with what rounding took."""
        return self.changes if self.rest is None else self.changes + self.rest

    def applied(self, base: Tensor, over: Over) -> Tensor:
        """What the tensor becomes, which was `base`."""
        changes = self.total
        if over in BY_ROW:
            changes = changes / torch.where(self.weight > 0, self.weight, 1.0)[:, None]
        elif over != "sum":
            changes = changes / self.weight.clamp(min=1.0)
        return (base.double() + changes).to(base.dtype)


def summed(upload: Upload, name: str, over: Over, base: Tensor) -> PartialSum:
    """What the clients of one upload changed in one tensor, which was `base`."""
    total = PartialSum.nothing(base, over)
    total.take(upload, name, over, base)
    return total


def _changes(upload: Upload, sent: Tensor | HeldTables, weights: Tensor, base: Tensor) -> Tensor:
    """In float64, of whole tensors, or of the upload's rows of them."""
    total = sent.total(weights) if isinstance(sent, HeldTables) else weighted_sum(sent, weights)
    if upload.rows is None:
        return total - weights.sum() * base.double()
    changes = total - weights.sum() * base[upload.rows].double()
    return torch.zeros_like(base, dtype=torch.float64).index_copy_(0, upload.rows, changes)


def _add_bases(sent: TableRows | PulledTables, weights: Tensor, base: Tensor, total: Tensor) -> None:
    """Some may have begun with other versions than `base`, from which changes are counted."""
    for version, began in enumerate(sent.base):
        if began.data_ptr() != base.data_ptr():
            total += weights[sent.base_of == version].sum() * (began.double() - base.double())


def _weight(upload: Upload, over: Over, weights: Tensor, rows: int) -> Tensor:
    return _holders(upload, rows) if over == "holders" else weights.sum()


def _weights(upload: Upload, over: Over) -> Tensor:
    if over != "samples":
        return torch.ones(len(upload), dtype=torch.float64)
    if "samples" not in upload.tensors:
        raise ValueError("a mean weighted by samples, of clients that did not send their number")
    return upload.tensor("samples").double()


def _holders(upload: Upload, rows: int) -> Tensor:
    """By row, how many of the clients hold it: who sends some rows only says by that which they are."""
    if upload.rows is not None:
        return torch.zeros(rows, dtype=torch.float64).index_fill_(0, upload.rows, len(upload))
    if "held" not in upload.tensors:
        raise ValueError("a mean over holders, of clients that did not say which rows they hold")
    return upload.tensor("held").sum(dim=0, dtype=torch.float64)


@dataclass(frozen=True)
class Sums:
    """The sums of a round over some clients: how many they were, their summed loss if they told it, the bytes of their
    uploads, and what was planned.
    """

    participants: int
    loss: float | None
    nbytes: int
    of: Mapping[str, PartialSum]

    def __add__(self, other: Sums) -> Sums:
        if self.of.keys() != other.of.keys():
            raise ValueError(f"sums of {sorted(self.of)} and of {sorted(other.of)} do not add up")
        of = {name: part + other.of[name] for name, part in self.of.items()}
        loss = None if self.loss is None or other.loss is None else self.loss + other.loss
        return Sums(self.participants + other.participants, loss, self.nbytes + other.nbytes, of)

    def to_bytes(self) -> bytes:
        parts: dict[str, dict[str, Tensor]] = {"changes": {}, "weight": {}, "rest": {}}
        for name, part in self.of.items():
            for kind, tensor in part.tensors().items():
                parts[kind][name] = tensor
        about = {"participants": torch.tensor(self.participants), "nbytes": torch.tensor(self.nbytes)}
        if self.loss is not None:
            about["loss"] = torch.tensor(self.loss, dtype=torch.float64)
        return encode("sums", joined(parts) | about)

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Sums:
        tensors = decode(data, schema)
        changes, weights, rests = (part_of(tensors, kind) for kind in ("changes", "weight", "rest"))
        of = {name: PartialSum(changes[name], weights[name], rests.get(name)) for name in changes}
        loss = float(tensors["loss"]) if "loss" in tensors else None
        return cls(int(tensors["participants"]), loss, int(tensors["nbytes"]), of)
