"""Uploads as the server sees them: a collection it queries, not a pile it owns.

`SummedUploads` keeps running sums in float64, chunk after chunk, and can answer nothing about a single client: what it
knows is what secure aggregation would tell. `KeptUploads` keeps the uploads for strategies that look at individuals:
means over a group, rows of single clients. Which averages are wanted is known before the round: the strategy's plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from confed.records import HeldTables, Sent, TableRows, Upload, weighted_sum

Over = Literal["participants", "samples", "holders", "sum"]
"""What a tensor is averaged over: all who took part; all, weighted by their `samples`; for each item row those who
changed it; or no average at all, the sum of all changes."""


class Uploads(ABC):
    """What came back in one round."""

    def __init__(self) -> None:
        self.participants = 0
        self.nbytes = 0

    def add(self, upload: Upload) -> None:
        self.participants += len(upload.clients)
        self.nbytes += upload.nbytes
        self._collect(upload)

    @abstractmethod
    def _collect(self, upload: Upload) -> None: ...

    @abstractmethod
    def mean(self, name: str, *, over: Over = "participants", where: Tensor | None = None) -> Tensor:
        """The aggregate of the tensor `name`, over all or over the clients numbered in `where`."""

    @abstractmethod
    def rows(self, name: str, items: Tensor, *, where: Tensor) -> Tensor:
        """(clients, items, d): some rows of the tables of the clients numbered in `where`, in that order."""


class RunningSum:
    """The sum of what clients changed in one tensor, and the weight it has to be divided by."""

    def __init__(self, previous: Tensor, over: Over) -> None:
        self.previous = previous
        self.over = over
        self.changes = torch.zeros_like(previous, dtype=torch.float64)
        self.weight = torch.zeros(len(previous) if over == "holders" else (), dtype=torch.float64)

    def add(self, sent: Sent, samples: Tensor | None) -> None:
        weights = torch.ones(len(sent), dtype=torch.float64)
        if self.over == "samples":
            if samples is None:
                raise ValueError("a mean weighted by samples, of clients that did not send their number")
            weights = samples.double()
        if isinstance(sent, TableRows):
            self._add_rows(sent, weights)
        elif self.over == "holders":
            raise ValueError("of a whole table nobody knows which rows were changed")
        else:
            total = sent.total(weights) if isinstance(sent, HeldTables) else weighted_sum(sent, weights)
            self.changes += total - weights.sum() * self.previous.double()
        if self.over != "holders":
            self.weight += weights.sum()

    def _add_rows(self, sent: TableRows, weights: Tensor) -> None:
        self.changes += sent.summed_changes(weights if self.over == "samples" else None)
        if self.over == "holders":
            self.weight += torch.bincount(sent.index.reshape(-1), minlength=sent.items + 1)[: sent.items]

    def value(self) -> Tensor:
        changes = self.changes
        if self.over == "holders":
            changes = changes / self.weight.clamp(min=1.0)[:, None]
        elif self.over != "sum":
            changes = changes / self.weight.clamp(min=1.0)
        return (self.previous.double() + changes).to(self.previous.dtype)


class SummedUploads(Uploads):
    """Streaming: sums of the planned tensors against the single version every client downloaded."""

    def __init__(self, plan: Mapping[str, Over], previous: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._sums = {name: RunningSum(previous[name], over) for name, over in plan.items()}

    def _collect(self, upload: Upload) -> None:
        for name, running in self._sums.items():
            running.add(upload.tensors[name], _samples(upload))

    def mean(self, name: str, *, over: Over = "participants", where: Tensor | None = None) -> Tensor:
        if where is not None or self._sums[name].over != over:
            raise ValueError(f"only the planned sum of {name!r} over {self._sums[name].over} was kept")
        return self._sums[name].value()

    def rows(self, name: str, items: Tensor, *, where: Tensor) -> Tensor:
        raise ValueError("sums were kept, not the uploads of single clients")


class KeptUploads(Uploads):
    """Every upload of the round, for strategies that compare clients."""

    def __init__(self, previous: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._previous = previous
        self._kept: list[Upload] = []

    def _collect(self, upload: Upload) -> None:
        self._kept.append(upload)

    @property
    def clients(self) -> Tensor:
        """The participants' numbers, in the order in which they came."""
        return torch.cat([upload.clients for upload in self._kept])

    def mean(self, name: str, *, over: Over = "participants", where: Tensor | None = None) -> Tensor:
        running = RunningSum(self._previous[name], over)
        for upload in self._kept:
            chosen = torch.isin(upload.clients, upload.clients if where is None else where)
            if bool(chosen.any()):
                part = upload.of(chosen)
                running.add(part.tensors[name], _samples(part))
        return running.value()

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


def _some_rows(sent: Sent, items: Tensor) -> Tensor:
    if isinstance(sent, HeldTables):
        return sent.rows(items)
    return (sent.dense() if isinstance(sent, TableRows) else sent).index_select(1, items)


def _samples(upload: Upload) -> Tensor | None:
    samples = upload.tensors.get("samples")
    return samples if isinstance(samples, Tensor) else None
