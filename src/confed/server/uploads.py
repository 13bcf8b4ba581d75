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

from confed.errors import MessageError
from confed.messages import HeldTables, Over, PartialSum, Sent, Sums, Upload, dense, summed


class Uploads(ABC):
    """What came back in one round from `clients`, by their ids, held against what was sent out: `previous`, by name."""

    def __init__(self, previous: Mapping[str, Tensor], clients: Tensor) -> None:
        self.previous = previous
        self.participants = 0
        self.loss = 0.0
        """Summed over clients."""
        self.nbytes = 0
        """Of all clients' messages."""
        self._awaited = clients.sort().values
        self._came = torch.zeros(len(clients), dtype=torch.bool)

    def add(self, upload: Upload) -> None:
        self._expect(upload.clients)
        # All messages of a round are as long: one is measured.
        each = self.nbytes // self.participants if self.participants else upload.bytes_per_client
        self.participants += len(upload)
        self.nbytes += len(upload) * each
        self.loss += float(upload.tensor("loss").sum())
        self._collect(upload)

    def _expect(self, clients: Tensor) -> None:
        """Nobody sends twice, and only who was asked."""
        place = torch.searchsorted(self._awaited, clients).clamp(max=len(self._awaited) - 1)
        known = self._awaited[place] == clients
        if not bool(known.all()):
            raise MessageError(f"an upload of client {int(clients[~known][0])}, who does not take part in this round")
        if bool(self._came[place].any()):
            raise MessageError(f"a second upload of client {int(clients[self._came[place]][0])} in this round")
        self._came[place] = True

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

    def __init__(self, plan: Mapping[str, Over], previous: Mapping[str, Tensor], clients: Tensor) -> None:
        super().__init__(previous, clients)
        self.plan = plan
        self._sums = {name: PartialSum.nothing(previous[name], over) for name, over in plan.items()}

    def _collect(self, upload: Upload) -> None:
        for name, over in self.plan.items():
            self._sums[name] += summed(upload, name, over, self.previous[name])

    def sums(self) -> Sums:
        """All that there is, to be merged elsewhere."""
        return Sums(self.participants, self.loss, self.nbytes, dict(self._sums))

    def merge(self, sums: Sums) -> None:
        """Take over what was summed elsewhere; who sent it is not known here, only how many they were."""
        self.participants += sums.participants
        if self.participants > len(self._awaited):
            raise MessageError(f"{self.participants} clients sent something, {len(self._awaited)} take part")
        self.loss += sums.loss
        self.nbytes += sums.nbytes
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

    def __init__(self, previous: Mapping[str, Tensor], clients: Tensor) -> None:
        super().__init__(previous, clients)
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


def _some_rows(sent: Sent, items: Tensor) -> Tensor:
    return sent.rows(items) if isinstance(sent, HeldTables) else dense(sent).index_select(1, items)
