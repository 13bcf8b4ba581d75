"""Sums over clients that can be put together from parts: all that a server needs that looks at nobody.

What clients changed in a tensor, added up in float64, and the weight it has to be divided by. Parts are made wherever
clients are held, and their sum is the same however clients are spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from confed.messages.devices import Upload
from confed.messages.tables import HeldTables, TableRows, weighted_sum
from confed.messages.wire import Schema, decode, encode
from confed.tensors import joined, part_of

Over = Literal["participants", "samples", "holders", "sum"]
"""What a tensor is averaged over: all who took part; all, weighted by their `samples`; for each item row those who
changed it; or no average at all, the sum of all changes."""


@dataclass(frozen=True)
class PartialSum:
    """Of one tensor, in float64."""

    changes: Tensor
    weight: Tensor
    """One number, or over `holders` one for each row."""

    @classmethod
    def nothing(cls, like: Tensor, over: Over) -> PartialSum:
        weight = torch.zeros(len(like) if over == "holders" else (), dtype=torch.float64)
        return cls(torch.zeros_like(like, dtype=torch.float64), weight)

    def __add__(self, other: PartialSum) -> PartialSum:
        return PartialSum(self.changes + other.changes, self.weight + other.weight)

    def applied(self, previous: Tensor, over: Over) -> Tensor:
        """What the tensor becomes."""
        changes = self.changes
        if over == "holders":
            changes = changes / self.weight.clamp(min=1.0)[:, None]
        elif over != "sum":
            changes = changes / self.weight.clamp(min=1.0)
        return (previous.double() + changes).to(previous.dtype)


def summed(upload: Upload, name: str, over: Over, previous: Tensor) -> PartialSum:
    """What the clients of one upload changed in one tensor."""
    sent = upload.tensors[name]
    weights = _weights(upload, over)
    weight = _holders(upload) if over == "holders" else weights.sum()
    if isinstance(sent, TableRows):
        return PartialSum(sent.summed_changes(weights), weight)
    total = sent.total(weights) if isinstance(sent, HeldTables) else weighted_sum(sent, weights)
    return PartialSum(total - weights.sum() * previous.double(), weight)


def _weights(upload: Upload, over: Over) -> Tensor:
    if over != "samples":
        return torch.ones(len(upload), dtype=torch.float64)
    if "samples" not in upload.tensors:
        raise ValueError("a mean weighted by samples, of clients that did not send their number")
    return upload.tensor("samples").double()


def _holders(upload: Upload) -> Tensor:
    if "held" not in upload.tensors:
        raise ValueError("a mean over holders, of clients that did not say which rows they hold")
    return upload.tensor("held").sum(dim=0, dtype=torch.float64)


@dataclass(frozen=True)
class Sums:
    """The sums of a round over some clients: how many they were, their summed loss, the bytes of their uploads, and
    what was planned.
    """

    participants: int
    loss: float
    nbytes: int
    of: Mapping[str, PartialSum]

    def __add__(self, other: Sums) -> Sums:
        if self.of.keys() != other.of.keys():
            raise ValueError(f"sums of {sorted(self.of)} and of {sorted(other.of)} do not add up")
        of = {name: part + other.of[name] for name, part in self.of.items()}
        return Sums(self.participants + other.participants, self.loss + other.loss, self.nbytes + other.nbytes, of)

    def to_bytes(self) -> bytes:
        changes = {name: part.changes for name, part in self.of.items()}
        weights = {name: part.weight for name, part in self.of.items()}
        about = {
            "participants": torch.tensor(self.participants),
            "loss": torch.tensor(self.loss, dtype=torch.float64),
            "nbytes": torch.tensor(self.nbytes),
        }
        return encode("sums", joined({"changes": changes, "weight": weights}) | about)

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Sums:
        tensors = decode(data, schema)
        weights = part_of(tensors, "weight")
        of = {name: PartialSum(changes, weights[name]) for name, changes in part_of(tensors, "changes").items()}
        return cls(int(tensors["participants"]), float(tensors["loss"]), int(tensors["nbytes"]), of)
