"""Parameters that Adam steps, with a state that survives a file: what central models and silos are made of.

Adam acts on whole tables, as in the published codes: rows outside the batch keep moving by momentum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from confed.stateful import Served


class Learner:
    """Named parameters and their Adam."""

    def __init__(self, params: Mapping[str, Tensor], learning_rate: float, dtype: torch.dtype) -> None:
        self.params = {name: value.to(dtype) for name, value in params.items()}
        self.rate = learning_rate
        self.adam = torch.optim.Adam(list(self.params.values()), lr=learning_rate, fused=True)

    def step(self, loss: Tensor) -> None:
        """One step down the gradient of `loss`."""
        self.adam.zero_grad()
        torch.autograd.backward(loss)
        self.adam.step()

    def moments(self, name: str) -> dict[str, Tensor]:
        """What Adam has of a parameter, for those who step it themselves, in place."""
        value = self.params[name]
        if not self.adam.state[value]:
            self.adam.state[value] = _before_the_first_step(value)
        return dict(self.adam.state[value])

    def state(self) -> dict[str, Tensor]:
        """Parameters and moments: all that the next step depends on."""
        state = {f"param.{name}": value.detach() for name, value in self.params.items()}
        for name, value in self.params.items():
            for moment, tensor in (self.adam.state[value] or _before_the_first_step(value)).items():
                state[f"adam.{moment}.{name}"] = tensor
        return state

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.load_params(state)
        for name, value in self.params.items():
            moments = _before_the_first_step(value)
            self.adam.state[value] = {moment: state[f"adam.{moment}.{name}"].clone() for moment in moments}

    def load_params(self, state: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.params.items():
                value.copy_(state[f"param.{name}"])

    def parameters(self) -> dict[str, Tensor]:
        """A copy of the parameters alone: serving takes no further step."""
        return {f"param.{name}": value.detach().clone() for name, value in self.params.items()}


class Learned(Served):
    """A model whose parameters are a learner's."""

    learner: Learner

    def state(self) -> dict[str, Tensor]:
        return self.learner.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.learner.load(state)

    def serving_state(self) -> dict[str, Tensor]:
        return self.learner.parameters()

    def load_serving(self, state: Mapping[str, Tensor]) -> None:
        self.learner.load_params(state)


def _before_the_first_step(param: Tensor) -> dict[str, Tensor]:
    """What torch's Adam creates at its first step, under its own names."""
    return {
        "step": torch.zeros((), dtype=torch.float32),
        "exp_avg": torch.zeros_like(param),
        "exp_avg_sq": torch.zeros_like(param),
    }


def batches_of(size: int, *rows: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Rows in step, `size` at a time; the last short batch is kept."""
    return zip(*(torch.split(tensor, size) for tensor in rows), strict=True)
