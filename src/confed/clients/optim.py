"""SGD and Adam for a cohort: one state per client, and clients that have run out of batches stand still.

torch's optimisers step whole tensors; here a step covers the first k clients of the cohort (those that still have
rows), and item tables receive the gradient of the rows that were looked up, not of the table. Semantics are those of
`torch.optim.SGD` without momentum and `torch.optim.Adam` on a dense table: an Adam row keeps moving after it was
touched once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.messages import add_rows

Rate = float | Tensor
"""A learning rate for all clients, or one for each (clients,)."""


class Optimiser(ABC):
    """Lives for one round of one cohort."""

    @abstractmethod
    def step(self, name: str, param: Tensor, gradient: Tensor, rate: Rate) -> None:
        """Step the first k clients of `param`, given their `gradient` (k, …), in place."""

    @abstractmethod
    def step_rows(self, name: str, table: Tensor, index: Tensor, gradient: Tensor, rate: Rate) -> None:
        """Step `table` (clients, touched, d), given the gradient (k, n, d) of its rows `index` (k, n), in place."""


class SGD(Optimiser):
    """x ← x − rate · (gradient + decay · x)."""

    def __init__(self, decay: float = 0.0) -> None:
        self.decay = decay

    def step(self, name: str, param: Tensor, gradient: Tensor, rate: Rate) -> None:
        own, rates = param[: len(gradient)], shaped(rate, gradient)
        own -= rates * (gradient + self.decay * own if self.decay else gradient)

    def step_rows(self, name: str, table: Tensor, index: Tensor, gradient: Tensor, rate: Rate) -> None:
        """Decay reaches every row of the table, looked up or not."""
        if self.decay:
            table[: len(gradient)] *= 1.0 - shaped(rate, gradient) * self.decay
        flat_table, flat_index = flatten_rows(table, index)
        add_rows(flat_table, flat_index, gradient * -shaped(rate, gradient))


class Adam(Optimiser):
    """Kingma and Ba, with the usual constants; the step counter is each client's own."""

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self._state: dict[str, tuple[Tensor, Tensor, Tensor]] = {}

    def step(self, name: str, param: Tensor, gradient: Tensor, rate: Rate) -> None:
        if name not in self._state:
            counter = torch.zeros(len(param), dtype=torch.float64)
            self._state[name] = (torch.zeros_like(param), torch.zeros_like(param), counter)
        first, second, steps = (state[: len(gradient)] for state in self._state[name])
        steps += 1
        first.lerp_(gradient, 1 - self.beta1)
        second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        rates = rate[: len(gradient)] if isinstance(rate, Tensor) else rate
        scale = shaped(-rates / (1 - self.beta1**steps), gradient)
        correction = shaped((1 - self.beta2**steps).rsqrt(), gradient)
        epsilon = torch.tensor(self.epsilon, dtype=gradient.dtype)
        # Few passes over memory: this line and the two above are what a step spends its time on.
        denominator = torch.addcmul(epsilon, second.sqrt(), correction)
        param[: len(gradient)].addcmul_(torch.div(first, denominator, out=denominator), scale)

    def step_rows(self, name: str, table: Tensor, index: Tensor, gradient: Tensor, rate: Rate) -> None:
        dense = torch.zeros_like(table[: len(gradient)])
        flat_dense, flat_index = flatten_rows(dense, index)
        add_rows(flat_dense, flat_index, gradient)
        self.step(name, table, dense, rate)


OPTIMISERS: dict[str, Callable[[], Optimiser]] = {"sgd": SGD, "adam": Adam}


def optimiser(name: str, decay: float) -> Optimiser:
    """A fresh optimiser; decay of weights goes with plain SGD only."""
    if not decay:
        return OPTIMISERS[name]()
    if name != "sgd":
        raise ValueError(f"weight decay goes with sgd, not with {name}")
    return SGD(decay)


def flatten_rows(table: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """View (clients, rows, d) as (clients·rows, d), and (k, n) row numbers as numbers into it."""
    clients, rows, width = table.shape
    offset = torch.arange(len(index)) * rows
    return table.view(clients * rows, width), (index + offset[:, None]).reshape(-1)


def shaped(rate: Rate, like: Tensor) -> Tensor:
    """A rate, common or per client, so that it multiplies `like` (k, …)."""
    rates = torch.as_tensor(rate, dtype=like.dtype)
    return rates[: len(like)].view(-1, *[1] * (like.dim() - 1)) if rates.dim() else rates


def per_client(rate: Rate, clients: int) -> NDArray[np.float64]:
    """A rate, common or per client, as one for each."""
    found: NDArray[np.float64] = torch.as_tensor(rate, dtype=torch.float64).expand(clients).contiguous().numpy()
    return found
