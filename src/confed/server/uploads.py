"""Uploads as the server sees them: a collection it queries.

`SummedUploads` keeps running sums only, in float64, chunk after chunk: nothing of a single client can be asked of it,
which is what secure aggregation can serve. Which sums are kept is the strategy's plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from confed.records import TableRows, Upload, add_rows

Over = Literal["participants", "samples", "holders", "sum"]
"""What a tensor is averaged over: all who took part; weighted by their number of rows; for each item row those who
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
    def merged(self, name: str) -> Tensor:
        """The aggregate of the tensor `name` under the strategy's plan."""


class SummedUploads(Uploads):
    """Streaming sums of changes against the single version every client downloaded."""

    def __init__(self, plan: Mapping[str, Over], previous: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._plan = plan
        self._previous = previous
        self._changes = {name: torch.zeros_like(previous[name], dtype=torch.float64) for name in plan}
        self._holders = {
            name: torch.zeros(len(previous[name]), dtype=torch.float64)
            for name, over in plan.items()
            if over == "holders"
        }
        self._samples = 0.0

    def _collect(self, upload: Upload) -> None:
        weights = self._sample_weights(upload)
        for name in self._plan:
            sent = upload.tensors[name]
            if isinstance(sent, TableRows):
                self._add_rows(name, sent)
            else:
                change = sent.double() - self._previous[name].double()
                if self._plan[name] == "samples" and weights is not None:
                    change = change * weights.view(-1, *[1] * (change.dim() - 1))
                self._changes[name] += change.sum(dim=0)

    def _sample_weights(self, upload: Upload) -> Tensor | None:
        if "samples" not in self._plan.values():
            return None
        samples = upload.tensors["samples"]
        assert isinstance(samples, Tensor)
        self._samples += float(samples.sum())
        return samples.double()

    def _add_rows(self, name: str, sent: TableRows) -> None:
        """Scatter the changed rows; index `items` is padding and falls off the end."""
        index = sent.index.reshape(-1)
        total = self._changes[name].new_zeros(sent.items + 1, sent.rows.shape[-1])
        add_rows(total, index, sent.changes().double())
        self._changes[name] += total[: sent.items]
        if name in self._holders:
            self._holders[name] += torch.bincount(index, minlength=sent.items + 1)[: sent.items]

    def merged(self, name: str) -> Tensor:
        previous, changes = self._previous[name], self._changes[name]
        over = self._plan[name]
        if over == "participants":
            changes = changes / max(self.participants, 1)
        elif over == "samples":
            changes = changes / max(self._samples, 1.0)
        elif over == "holders":
            changes = changes / self._holders[name].clamp(min=1.0)[:, None]
        return (previous.double() + changes).to(previous.dtype)
