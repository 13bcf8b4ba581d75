"""MF: matrix factorisation of implicit feedback in one place (Koren et al. 2009; decisions.md "mf").

    s_ui = P[u] · Q[i],    minimise the mean over rows of  softplus(s) − y·s

on every training positive (y = 1) and q sampled negatives (y = 0) for each, redrawn every epoch, with Adam.
Koren's loss is squared error on ratings and has biases; the papers that compare with "MF" on implicit data
give no loss, and we take cross-entropy without biases (D-7). Negatives come from outside
`TrainingData.excluded`, so the protocol decides whether they avoid the held-out items.

The gradient is written out, ∂/∂P[u] = (σ(s) − y) / B · Q[i] and likewise for Q: half the time of autograd.
"""

from __future__ import annotations

import torch
from torch import Tensor

from confed.data.split import TrainingData
from confed.initial import initial, normal
from confed.models.base import PointwiseConfig, PointwiseModel
from confed.scoring import Scorer, dot_scorer


class MFConfig(PointwiseConfig):
    """Defaults: those of CoFedRec's comparison."""


class MFModel(PointwiseModel):
    """A user table and an item table."""

    def __init__(self, config: MFConfig, data: TrainingData, seed: int, dtype: str) -> None:
        draw = normal(config.init_deviation)
        params = {
            "users": initial(seed, "users", (data.users, config.dim), draw),
            "items": initial(seed, "items", (data.items, config.dim), draw),
        }
        super().__init__(data, seed, dtype, params, config)
        for table in self.params.values():
            table.grad = torch.zeros_like(table)

    def step(self, users: Tensor, items: Tensor, labels: Tensor) -> Tensor:
        user_rows = self.params["users"].index_select(0, users)
        item_rows = self.params["items"].index_select(0, items)
        logits = (user_rows * item_rows).sum(dim=1)
        error = ((torch.sigmoid(logits) - labels) / len(labels))[:, None]
        _set_gradient(self.params["users"], users, error * item_rows)
        _set_gradient(self.params["items"], items, error * user_rows)
        self.adam.step()
        return logits

    def scorer(self) -> Scorer:
        return dot_scorer(self.params["users"].clone(), self.params["items"])

    def item_vectors(self) -> Tensor:
        return self.params["items"]


def _set_gradient(table: Tensor, index: Tensor, gradient: Tensor) -> None:
    """The table's gradient, given that of the rows that were looked up."""
    assert table.grad is not None
    table.grad.zero_().index_add_(0, index, gradient)
