"""A company whose users are rows of a table: a central model of one domain, with the rows of shared users exchanged.

Before local training the rows of shared users become what the server sent, afterwards they are sent back (D-32). The
model is whatever steps its parameters by epochs and keeps users in the first rows of one table.

A user whom the company has nothing of but hears about, a cold one, is scored with the row that it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from confed.models.base import EpochModel
from confed.models.silo import Rows, Shared, Silo, replaced
from confed.scoring import Scorer


class TableSilo(Silo):
    """`table` names the parameter of `model` whose first rows are the users'."""

    def __init__(self, model: EpochModel, table: str, shared: Shared, local_epochs: int) -> None:
        super().__init__(model.data, shared)
        self.model = model
        self.table = model.params[table]
        self.local_epochs = local_epochs
        self.hidden = model.hidden
        told_of = torch.isin(model.strangers, shared.users)
        model.strangers = model.strangers[~told_of]

    def train(self, number: int, received: Rows | None) -> float:
        self._take(received)
        first = (number - 1) * self.local_epochs + 1
        return float(np.mean([self.model.train(epoch) for epoch in range(first, first + self.local_epochs)]))

    def _take(self, received: Rows | None) -> None:
        if received is not None:
            self.table.copy_(replaced(self.table, self.shared.users, received["users"]))

    def share(self) -> Rows:
        return {"users": self.table.index_select(0, self.shared.users)}

    def scorer(self, received: Rows | None = None) -> Scorer:
        """The model's scorer is made while the server's rows are in its table, and does not look at it again."""
        own = self.table.clone()
        self._take(received)
        score = self.model.scorer()
        self.table.copy_(own)
        return score

    def state(self) -> dict[str, Tensor]:
        return self.model.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.model.load(state)

    def serving_state(self) -> dict[str, Tensor]:
        return self.model.serving_state()

    def load_serving(self, state: Mapping[str, Tensor]) -> None:
        self.model.learner.load_params(state)
