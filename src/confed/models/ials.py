"""iALS: implicit matrix factorisation by alternating least squares (Hu, Koren and Volinsky 2008).

    minimise  Σ_ui c_ui (r_ui − x_u · y_i)² + λ (Σ_u |x_u|² + Σ_i |y_i|²)

over ALL pairs, with r = 1 and c = α where the user has the item in training, r = 0 and c = 1 elsewhere.
Solved by the library `implicit` (three conjugate-gradient steps per row and sweep; Takács et al. 2011). No
negatives are sampled, so the protocol's negative pool does not matter.
"""

from __future__ import annotations

import numpy as np
import torch
from implicit.als import AlternatingLeastSquares
from pydantic import Field
from threadpoolctl import threadpool_limits
from torch import Tensor

from confed.config import MethodConfig
from confed.data.split import TrainingData
from confed.models.base import OneShotModel, interaction_matrix
from confed.ragged import Ragged
from confed.random import fingerprint
from confed.scoring import Scorer, dot_scorer


class IALSConfig(MethodConfig):
    """The defaults were chosen on the validation items of MovieLens-100K, `strict`."""

    factors: int = Field(default=32, ge=1)
    """Width of user and item vectors."""
    regularisation: float = Field(default=15.0, ge=0)
    """λ."""
    alpha: float = Field(default=4.0, gt=0)
    """Weight of a training pair; every other pair weighs 1."""
    iterations: int = Field(default=30, ge=1)
    """Sweeps, each over all users and then all items."""


class IALSModel(OneShotModel):
    """A user table and an item table."""

    def __init__(self, config: IALSConfig, data: TrainingData, seed: int, dtype: str) -> None:
        super().__init__(data, seed, dtype)
        self.config = config

    def fit(self) -> dict[str, Tensor]:
        # The library has its own threads over rows; threads inside its small BLAS calls only slow it down.
        with threadpool_limits(limits=1, user_api="blas"):
            model = AlternatingLeastSquares(
                factors=self.config.factors,
                regularization=self.config.regularisation,
                alpha=self.config.alpha,
                iterations=self.config.iterations,
                dtype=np.float64 if self.dtype == torch.float64 else np.float32,
                use_gpu=False,
                calculate_training_loss=False,
                num_threads=torch.get_num_threads(),
                random_state=fingerprint(self.seed, "init", "ials"),
            )
            model.fit(interaction_matrix(self.data, torch.float32), show_progress=False)
        return {"users": torch.from_numpy(model.user_factors), "items": torch.from_numpy(model.item_factors)}

    def scorer(self) -> Scorer:
        return dot_scorer(self.model["users"], self.model["items"])

    def newcomers(self, histories: Ragged) -> Tensor:
        """A user's least squares, solved exactly: x = (YᵀY + λI + (α − 1) Σ y yᵀ)⁻¹ α Σ y, over the user's items."""
        items, alpha = self.model["items"].double(), self.config.alpha
        common = items.T @ items + self.config.regularisation * torch.eye(items.shape[1], dtype=torch.float64)
        vectors = []
        for place in range(len(histories)):
            own = items[torch.from_numpy(np.unique(histories[place]))]
            vectors.append(torch.linalg.solve(common + (alpha - 1) * own.T @ own, alpha * own.sum(dim=0)))
        return (torch.stack(vectors) @ items.T).to(self.dtype)

    def item_vectors(self) -> Tensor:
        return self.model["items"]
