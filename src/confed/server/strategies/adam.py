"""A server that takes what all clients pulled for a gradient, and steps by Adam (Kingma and Ba 2015)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from confed.adam import ADAM
from confed.messages import Download, Needs, Over
from confed.server.strategies.base import Strategy
from confed.server.uploads import Uploads

_FIRST, _SECOND, _STEPS = "first", "second", "steps"


class ServerAdam(Strategy[Uploads]):
    """Of one table V the gradient is 2 (λ V − Σ_u what client u added to it)."""

    needs: ClassVar[Needs] = "sum"

    def __init__(self, table: str, rate: float, decay: float) -> None:
        self.table = table
        self.rate = rate
        self.decay = decay
        self.plan: Mapping[str, Over] = {table: "sum"}
        self.uploads = frozenset({table, "loss"})

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._value = shared[self.table]
        moments = torch.zeros_like(self._value, dtype=torch.float64)
        self._first, self._second, self._steps = moments, moments.clone(), 0
        self._table_of = torch.zeros(len(ids), dtype=torch.int64)

    def download(self, clients: Tensor) -> Download:
        return Download({self.table: self._value[None]}, self._table_of)

    def aggregate(self, uploads: Uploads, number: int) -> None:
        value, (beta1, beta2, epsilon) = self._value.double(), ADAM
        gradient = 2.0 * (self.decay * value - uploads.changes(self.table))
        self._steps += 1
        self._first = beta1 * self._first + (1.0 - beta1) * gradient
        self._second = beta2 * self._second + (1.0 - beta2) * gradient**2
        first = self._first / (1.0 - beta1**self._steps)
        second = self._second / (1.0 - beta2**self._steps)
        self._value = (value - self.rate * first / (second.sqrt() + epsilon)).to(self._value.dtype)

    def state(self) -> dict[str, Tensor]:
        own = {_FIRST: self._first, _SECOND: self._second, _STEPS: torch.tensor(self._steps)}
        return {self.table: self._value, **own}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._value, self._steps = state[self.table], int(state[_STEPS])
        self._first, self._second = state[_FIRST], state[_SECOND]
