"""A local objective is a sum of terms; each gives one value per client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """What a term sees: the clients that still have rows, the rows of this batch, and the scores on them."""

    logits: Tensor
    labels: Tensor
    weights: Tensor
    """1 / (number of rows of the client in this batch), 0 on padding: a weighted sum is a mean per client."""
    params: Mapping[str, Tensor]
    rows: Mapping[str, Tensor]
    round: int = 1
    """For weights that change as training goes on."""


class Term(ABC):
    """One summand of the objective."""

    name: str
    """As errors and logs call it."""

    @abstractmethod
    def value(self, batch: Batch) -> Tensor:
        """(clients,) differentiable; the gradient of its sum is each client's own gradient."""
