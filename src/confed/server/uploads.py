"""Uploads as the server sees them: a collection it queries, not a pile it owns.

`SummedUploads` keeps running sums in float64, chunk after chunk, and can answer nothing about a single client: what it
knows is what secure aggregation would tell. `KeptUploads` keeps the uploads for strategies that look at individuals:
means over a group, rows of single clients. Which averages are wanted is known before the round: the strategy's plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from confed.messages import HeldTables, Over, PartialSum, Sent, Sums, TableRows, Upload, dense, weighted_sum


class Uploads(ABC):
    """What came back in one round, held against what was sent out: `previous`, by name."""

    def __init__(self, previous: Mapping[str, Tensor]) -> None:
        self.previous = previous
        self.participants = 0
        self.loss = 0.0
        """Summed over clients."""
        self._bytes_per_client = 0

    def add(self, upload: Upload) -> None:
        if not self.participants:
            self._bytes_per_client = upload.bytes_per_client
        self.participants += len(upload)
        self.loss += float(upload.tensor("loss").sum())
        self._collect(upload)

    @property
    def nbytes(self) -> int:
        """Of all clients' messages."""
        return self.participants * self._bytes_per_client

    @abstractmethod
    def _collect(self, upload: Upload) -> None: ...

    @abstractmethod
    def partial(self, name: str, *, over: Over, where: Tensor | None) -> PartialSum:
        """What all clients, or those whose ids are in `where`, changed in the tensor `name`."""

    @abstractmethod
    def rows(self, name: str, items: Tensor, *, where: Tensor) -> Tensor:
        """(clients, items, d): some rows of the tables of the clients whose ids are in `where`, in that order."""

    def mean(self, name: str, *, over: Over = "participants", where: Tensor | None = None) -> Tensor:
        """What the tensor `name` becomes by what all, or the clients in `where`, made of it."""
        return self.partial(name, over=over, where=where).applied(self.previous[name], over)


class SummedUploads(Uploads):
    """Streaming: sums of the planned tensors against the single version every client downloaded."""

    def __init__(self, plan: Mapping[str, Over], previous: Mapping[str, Tensor]) -> None:
        super().__init__(previous)
        self.plan = plan
        self._sums = {name: PartialSum.nothing(previous[name], over) for name, over in plan.items()}

    def _collect(self, upload: Upload) -> None:
        for name, over in self.plan.items():
            self._sums[name] += summed(upload, name, over, self.previous[name])

    def sums(self) -> Sums:
        """All that there is, to be merged elsewhere."""
        return Sums(self.participants, self.loss, dict(self._sums))

    def merge(self, sums: Sums) -> None:
        """Take over what was summed elsewhere."""
        self.participants += sums.participants
        self.loss += sums.loss
        for name, part in sums.of.items():
            self._sums[name] += part

    def partial(self, name: str, *, over: Over, where: Tensor | None) -> PartialSum:
        if where is not None or self.plan[name] != over:
            raise ValueError(f"only the planned sum of {name!r} over {self.plan[name]} was kept")
        return self._sums[name]

    def rows(self, name: str, items: Tensor, *, where: Tensor) -> Tensor:
        raise ValueError("sums were kept, not the uploads of single clients")


class KeptUploads(Uploads):
    """Every upload of the round, for strategies that compare clients."""

    def __init__(self, previous: Mapping[str, Tensor]) -> None:
        super().__init__(previous)
        self._kept: list[Upload] = []

    def _collect(self, upload: Upload) -> None:
        self._kept.append(upload)

    @property
    def clients(self) -> Tensor:
        """The participants' ids, in the order in which they came."""
        return torch.cat([upload.clients for upload in self._kept])

    def partial(self, name: str, *, over: Over, where: Tensor | None) -> PartialSum:
        total = PartialSum.nothing(self.previous[name], over)
        for upload in self._kept:
            chosen = torch.isin(upload.clients, upload.clients if where is None else where)
            if bool(chosen.any()):
                total += summed(upload.of(chosen), name, over, self.previous[name])
        return total

    def rows(self, name: str, items: Tensor, *, where: Tensor) -> Tensor:
        found = []
        for upload in self._kept:
            chosen = torch.isin(upload.clients, where)
            found.append((upload.clients[chosen], _some_rows(upload.of(chosen).tensors[name], items)))
        clients, rows = (torch.cat(parts) for parts in zip(*found, strict=True))
        if not bool(torch.isin(where, clients).all()):
            raise ValueError(f"rows of {name!r} are asked of clients that sent nothing")
        order = torch.argsort(clients)
        return rows[order[torch.searchsorted(clients[order], where)]]


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


def _some_rows(sent: Sent, items: Tensor) -> Tensor:
    return sent.rows(items) if isinstance(sent, HeldTables) else dense(sent).index_select(1, items)
