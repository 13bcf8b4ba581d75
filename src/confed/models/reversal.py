"""A layer that turns gradients round: what is below it learns to mislead what is above (Ganin and Lempitsky 2015)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def reversed_gradient(values: Tensor) -> Tensor:
    """The same values, whose gradient is turned round."""
    found: Tensor = _Reversed.apply(values)  # type: ignore[no-untyped-call]
    return found


class _Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return -gradients[0]
