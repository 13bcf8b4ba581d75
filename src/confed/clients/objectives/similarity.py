"""CoFedRec's ablation Item_S (Eq. 10): items that a client likes shall resemble the items of their category.

    L = − 1/|D_u| · Σ_{i∈D_u} 1/(n_c(i) − 1) · Σ_{z∈c(i), z≠i} cos(V_u[i], V_u[z])

D_u are the training positives; items alone in their category are skipped. All clients at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from confed.clients.objectives.dense import (
    Categories,
    DenseTerm,
    Whole,
    apart,
    side_by_side,
    through_unit,
    unit_rows,
)


class ItemSimilarity(DenseTerm):
    """weight · L on the item tables named, side by side."""

    name = "similarity"

    def __init__(self, tables: tuple[str, ...], weight: float) -> None:
        self.tables = tables
        self.weight = weight

    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        rows = side_by_side(whole.tables, self.tables)
        if "membership" not in whole.side:
            return torch.zeros(len(rows), dtype=torch.float64), {}
        unit, inverse = unit_rows(rows)
        categories = Categories(whole.side["membership"].long())
        liked = whole.positives.to(rows.dtype)
        shares = liked / liked.sum(dim=1, keepdim=True).clamp(min=1) * (categories.sizes > 1)
        weights = shares[:, :, None] / categories.partners(rows)

        others = categories.sums(unit) - unit
        value = -(weights * unit * others).sum(dim=(1, 2))
        weighted = weights * unit
        gradient = -(weights * others + categories.sums(weighted) - weighted)
        gradient = self.weight * through_unit(gradient, unit, inverse)
        return self.weight * value.double(), apart(gradient, whole.tables, self.tables)
