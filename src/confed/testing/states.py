"""Whether two states are the same."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def assert_equal_states(one: Mapping[str, Tensor], other: Mapping[str, Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        _assert_close(name, other[name], value, tolerance, tolerance)


def assert_close_states(one: Mapping[str, Tensor], other: Mapping[str, Tensor], tolerance: float) -> None:
    """Equal but for rounding: differences are held against the largest entry of their tensor."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        largest = float(value.double().abs().max()) if value.numel() else 0.0
        _assert_close(name, other[name].double(), value.double(), 0, tolerance * largest)


def _assert_close(name: str, actual: Tensor, expected: Tensor, relative: float, absolute: float) -> None:
    def named(message: str) -> str:
        return f"{name}: {message}"

    torch.testing.assert_close(actual, expected, rtol=relative, atol=absolute, msg=named)
