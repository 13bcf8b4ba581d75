"""What keeps a client's table near one that the server made for it (GPFedRec)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from confed.clients.objectives.dense import DenseTerm, Whole


@dataclass(frozen=True)
class Near(DenseTerm):
    """weight · the mean square, over all entries of `table`, of its difference from the client's own `target`."""

    table: str
    target: str
    weight: float
    name: str = "near"

    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        away = whole.tables[self.table] - whole.own[self.target]
        entries = away[0].numel()
        values = away.square().sum(dim=(1, 2)) * (self.weight / entries)
        return values, {self.table: away.mul_(2.0 * self.weight / entries)}
