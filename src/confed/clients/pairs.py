"""FedeRank's visit: pairs in sequence, against items as the server sent them (`kernels/pairs.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from confed.clients.kernels import visit_pairs
from confed.clients.procedures import Visit
from confed.clients.sampling import LocalRows
from confed.random import Stream

if TYPE_CHECKING:
    from confed.clients.cohort import Cohort


@dataclass(frozen=True)
class RankPairs(Visit):
    """δ = 1 / (1 + exp(s_i − s_j)) of a positive i and a negative j steps the vector at once, and the rows in the end.

    A positive's row is changed with the probability `told`: what is not changed is not sent.
    """

    vector: str
    table: str
    offset: str
    rate: float
    decays: tuple[float, float, float]
    """Of the vector, of positive and of negative rows."""
    told: float

    def train(self, cohort: Cohort, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        losses = np.zeros(len(rows.clients))
        coins = stream.child("told").uniform(rows.ids[:, None], np.arange(rows.local.shape[1] // 2)[None, :])
        visit_pairs(
            cohort.params[self.vector].numpy(),
            cohort.tables[self.table].numpy(),
            cohort.tables[self.offset].numpy(),
            self.rate,
            self.decays,
            rows.local.numpy(),
            rows.lengths,
            coins < self.told,
            losses,
        )
        return {"pairs": torch.from_numpy(losses)}
