"""Popularity: every user gets the items that most users have. The line that anything learnt has to pass.

An item's score is the logit of its share of all training interactions, (count + ½) / (Σ count + items/2). It
ranks as the counts do, and unlike them it is a logit: the `paper` protocol ranks float32 probabilities, and
the probability of a count above 16 is 1. Repeated pairs, where the protocol keeps them, count as often as
they occur.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from confed.config import MethodConfig
from confed.models.base import OneShotModel
from confed.ragged import Ragged
from confed.scoring import Scorer


class PopularityConfig(MethodConfig):
    """Nothing to choose."""


class PopularityModel(OneShotModel):
    """Counts the training interactions of every item."""

    def fit(self) -> dict[str, Tensor]:
        counts = np.bincount(self.data.positives.values, minlength=self.data.items) + 0.5
        return {"logits": torch.logit(torch.from_numpy(counts / counts.sum())).to(self.dtype)}

    def scorer(self) -> Scorer:
        logits = self.model["logits"]

        def score(clients: Tensor) -> Tensor:
            return logits.expand(len(clients), -1)

        return score

    def newcomers(self, histories: Ragged) -> Tensor:
        return self.model["logits"].expand(len(histories), -1)
