"""FedRAP's terms on its two tables, the shared one and the client's own (Li et al., ICLR 2024).

`Apart` drives the tables away from each other, `Small` keeps the shared one sparse or small. As in the published code
they look at the rows of the batch only (D-14); `ApartWhole` and `SparseWhole` are the paper's own
form on whole tables. Their weights grow with the rounds, w · tanh(t / 10), unless they are `constant`.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from confed.clients.objectives.base import Batch, Term
from confed.clients.objectives.dense import DenseTerm, Whole

Norm = Literal["l1", "l2", "max", "nuclear"]


class Curriculum:
    """A weight that grows from nothing to `final`."""

    def __init__(self, final: float, *, constant: bool = False) -> None:
        self.final = final
        self.constant = constant

    def at(self, round_: int) -> float:
        return self.final if self.constant else self.final * math.tanh(round_ / 10)


class Apart(Term):
    """− λ(t) · mean over the batch's rows of (own − shared)²: unbounded below, so λ has to stay small."""

    name = "independence"

    def __init__(self, shared: str, own: str, weight: Curriculum) -> None:
        self.shared, self.own, self.weight = shared, own, weight

    def value(self, batch: Batch) -> Tensor:
        distance = (batch.rows[self.own] - batch.rows[self.shared]).square().mean(dim=2)
        return -self.weight.at(batch.round) * (distance * batch.weights).sum(dim=1)


class Small(Term):
    """μ(t) · a norm of the batch's rows of one table: mean |x|, mean x², max |x|, or singular values per row."""

    name = "sparsity"

    def __init__(self, table: str, weight: Curriculum, norm: Norm = "l1") -> None:
        self.table, self.weight, self.norm = table, weight, norm

    def value(self, batch: Batch) -> Tensor:
        rows, weights = batch.rows[self.table], batch.weights
        if self.norm == "max":
            size = (rows.abs().amax(dim=2) * (weights > 0)).amax(dim=1)
        elif self.norm == "nuclear":
            real = rows * (weights > 0)[:, :, None]
            size = torch.linalg.svdvals(real).sum(dim=1) * weights.amax(dim=1)
        else:
            each = rows.abs() if self.norm == "l1" else rows.square()
            size = (each.mean(dim=2) * weights).sum(dim=1)
        return self.weight.at(batch.round) * size


class ApartWhole(DenseTerm):
    """− λ(t) · ‖own − shared‖² over whole tables."""

    name = "independence"

    def __init__(self, shared: str, own: str, weight: Curriculum) -> None:
        self.shared, self.own, self.weight = shared, own, weight

    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        weight = self.weight.at(whole.round)
        difference = whole.tables[self.own] - whole.tables[self.shared]
        towards = 2.0 * weight * difference
        return -weight * difference.square().sum(dim=(1, 2)).double(), {self.shared: towards, self.own: -towards}


class SparseWhole(DenseTerm):
    """μ(t) · Σ |x| over a whole table."""

    name = "sparsity"

    def __init__(self, table: str, weight: Curriculum) -> None:
        self.table, self.weight = table, weight

    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        weight, table = self.weight.at(whole.round), whole.tables[self.table]
        return weight * table.abs().sum(dim=(1, 2)).double(), {self.table: weight * table.sign()}
