"""EASE: the shallow autoencoder with a closed form (Steck 2019).

    minimise |X − XB|² + λ|B|²  subject to  diag(B) = 0;    s_u = X_u B

with X the binary training matrix. With P = (XᵀX + λI)^{-1} the solution is B_ij = −P_ij / P_jj off the
diagonal. The inverse is taken in place in float64; it needs items² numbers, so very large catalogues are
refused.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from confed.config import MethodConfig
from confed.data.split import TrainingData
from confed.errors import ConfedError
from confed.models.base import OneShotModel, interaction_matrix
from confed.ragged import Ragged
from confed.scoring import Scorer

MOST_ITEMS = 30_000


class EASEConfig(MethodConfig):
    regularisation: float = Field(default=300.0, gt=0)
    """λ. The default was chosen on the validation items of MovieLens-100K, `strict`."""


class EASEModel(OneShotModel):
    """An item-item weight matrix."""

    def __init__(self, config: EASEConfig, data: TrainingData, seed: int, dtype: str) -> None:
        if data.items > MOST_ITEMS:
            raise ConfedError(
                f"ease inverts an items x items matrix: {data.items:,} items would take "
                f"{8 * data.items**2 / 1e9:.0f} GB, at most {MOST_ITEMS:,} items are accepted; "
                f"use ials instead, or drop rare items from the data"
            )
        super().__init__(data, seed, dtype)
        self.regularisation = config.regularisation
        self.matrix = interaction_matrix(data, self.dtype)

    def fit(self) -> dict[str, Tensor]:
        weights = torch.from_numpy(item_weights(self.matrix, self.regularisation))
        return {"weights": weights.to(self.dtype).contiguous()}

    def scorer(self) -> Scorer:
        weights = self.model["weights"].numpy()

        def score(clients: Tensor) -> Tensor:
            return torch.from_numpy(self.matrix[clients.numpy()] @ weights)

        return score

    def newcomers(self, histories: Ragged) -> Tensor:
        """The closed form holds for any row of X."""
        rows = interaction_matrix(TrainingData(self.data.items, histories, histories), self.dtype)
        return torch.from_numpy(rows @ self.model["weights"].numpy())

    def item_vectors(self) -> Tensor:
        """Items are alike whose weights say much of the same others."""
        return self.model["weights"]


def item_weights(matrix: scipy.sparse.csr_matrix, regularisation: float) -> NDArray[np.float64]:
    """B, the closed form."""
    counts = matrix.astype(np.float64)
    gram = torch.from_numpy((counts.T @ counts).toarray())
    gram.diagonal().add_(regularisation)
    _invert(gram)
    gram /= -gram.diagonal().clone()
    gram.fill_diagonal_(0.0)
    weights: NDArray[np.float64] = gram.numpy()
    return weights


def _invert(matrix: Tensor) -> None:
    """Write the inverse of a symmetric positive definite matrix over it. By torch: with 18,462 items SciPy's LAPACK
    ended in a segmentation fault.
    """
    _, failed = torch.linalg.cholesky_ex(matrix, out=(matrix, torch.empty((), dtype=torch.int32)))
    if failed:
        raise ConfedError("ease: the Gram matrix is not positive definite: raise `regularisation`")
    torch.cholesky_inverse(matrix, out=matrix)
