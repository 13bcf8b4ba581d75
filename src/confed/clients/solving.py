"""FCF's visit: the client's vector in closed form, and from it the gradient of every item row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from confed.clients.procedures import Visit
from confed.clients.sampling import LocalRows
from confed.messages import Pull, gather_rows
from confed.random import Stream

if TYPE_CHECKING:
    from confed.clients.cohort import Cohort


@dataclass(frozen=True)
class Solve(Visit):
    """The vector p that minimises Σ_i c_i (y_i − p · V[i])² + λ |p|² over all items, with c = 1 + α and y = 1 for those
    that the client has, c = 1 and y = 0 for others; V is pulled by c_i (y_i − p · V[i]) p.

    Sums over all items are those over the items that the client has, and V's own second moments.
    """

    vector: str
    table: str
    alpha: float
    decay: float

    def train(self, cohort: Cohort, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        tables = cohort.download.tables[self.table]
        moments = torch.matmul(tables.mT, tables).index_select(0, cohort.table_of)
        own = gather_rows(tables, cohort.table_of, rows.touched)  # padding is zeros, which add nothing
        system = moments + self.alpha * torch.bmm(own.mT, own) + self.decay * torch.eye(own.shape[2], dtype=own.dtype)
        found = torch.linalg.solve(system, (1.0 + self.alpha) * own.sum(dim=1))
        cohort.params[self.vector].copy_(found)
        scores = torch.bmm(own, found[:, :, None])[:, :, 0]
        cohort.pulls[self.table] = Pull(found, 1.0 + self.alpha - self.alpha * scores)
        real = rows.touched < tables.shape[1]
        squares = ((1.0 + self.alpha) * (1.0 - scores) ** 2 - scores**2) * real
        others = torch.einsum("ud,ude,ue->u", found, moments, found)
        return {"squared error": (squares.sum(dim=1) + others).double() / tables.shape[1]}
