"""A visit that is one step: all of a client's rows at once, and the gradient of what it loses on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from confed.clients.optim import optimiser
from confed.clients.procedures import Visit
from confed.clients.sampling import LocalRows
from confed.random import Stream

if TYPE_CHECKING:
    from confed.clients.cohort import Cohort


@dataclass(frozen=True)
class OneStep(Visit):
    """Of the parameters and tables named in `stepped`, by an optimiser that begins anew."""

    stepped: tuple[str, ...]
    rate: float
    optimiser: str
    term: ClassVar[str]
    """As errors and logs call the loss."""

    @abstractmethod
    def loss(
        self,
        cohort: Cohort,
        params: Mapping[str, Tensor],
        tables: Mapping[str, Tensor],
        rows: LocalRows,
        stream: Stream,
    ) -> Tensor:
        """(clients,), by the cohort's parameters and tables, which are given apart so that they can be followed."""

    def train(self, cohort: Cohort, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        params, tables = (
            {name: value.detach().requires_grad_(name in self.stepped) for name, value in held.items()}
            for held in (cohort.params, cohort.tables)
        )
        loss = self.loss(cohort, params, tables, rows, stream)
        leaves = [tables[name] if name in tables else params[name] for name in self.stepped]
        own = optimiser(self.optimiser, 0.0)
        for name, slope in zip(self.stepped, torch.autograd.grad(loss.sum(), leaves), strict=True):
            own.step(name, (cohort.tables if name in tables else cohort.params)[name], slope, self.rate)
        return {self.term: loss.detach().double()}


def looked_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows `index` (clients, n) of each client's `table` (clients, rows, d); gradients find their way back."""
    return table.gather(1, index[:, :, None].expand(-1, -1, table.shape[2]))
