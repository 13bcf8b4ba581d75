"""A table that is given away once: projected at random, and blurred (Blocki et al. 2012; PriCDR of Chen et al. 2022).

    Y = (X G + w N) / √r,    G (m, r) and N (n, r) of independent standard normal numbers

Every column of √r Y is a normal vector with covariance X Xᵀ + w² 1, and the columns are independent. That hides any one
entry of X, which may be larger or smaller by 1: a column is (ε₀, δ₀)-private with

    w = 1 / (√(ε₀ / (2 ln(4/δ₀)) + 1/4) − 1/2),    δ₀ = δ / (2r)

and all r of them are (ε, δ)-private with the ε that dp-accounting has for so many mechanisms of that kind. If columns
of X are centred, a changed entry moves a whole column, but by less than 1 in length: the same holds.

PriCDR projects U √(s² + w²) Vᵀ, which is X with raised singular values. Where X has at least as many columns as rows,
that is the same distribution. Where it has fewer, nothing is added in the directions that are not in X, so that Y tells
them exactly, and nothing is promised; here there is noise in all of them.

In a simulation G and N are functions of the seed; a deployment has to draw them in secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from confed.privacy.accounting import require_accounting
from confed.random import keyed

ENTRY = "one interaction of one person"
"""The unit: an entry of a table of zeros and ones."""
_STEPS = 64
"""In how many steps of the grid, on which losses of privacy are composed, the ε₀ of a column is cut."""


@dataclass(frozen=True)
class Projection:
    """How tables of some size are released; `delta` is the probability with which the promise may fail."""

    columns: int
    """r."""
    column_epsilon: float
    """ε₀."""
    delta: float
    """δ."""

    @property
    def column_delta(self) -> float:
        """δ₀: half of δ is for the columns, the other half for their composition."""
        return self.delta / (2 * self.columns)

    @property
    def noise(self) -> float:
        """w."""
        part = self.column_epsilon / (2 * math.log(4 / self.column_delta))
        # As it is written, without the difference of two numbers that are nearly the same.
        return (math.sqrt(part + 0.25) + 0.5) / part

    @cached_property
    def epsilon(self) -> float:
        """Of all columns."""
        require_accounting("what a noisy release promises", "take another method")
        from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415 - an extra

        column = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(self.column_epsilon, self.column_delta),
            value_discretization_interval=self.column_epsilon / _STEPS,
        )
        return float(column.self_compose(self.columns).get_epsilon_for_delta(self.delta))

    def drawn(self, inputs: int, *key: object) -> Tensor:
        """G, by which rows of so many numbers are multiplied, in float64."""
        return torch.randn((inputs, self.columns), generator=keyed("projection", *key), dtype=torch.float64)

    def released(self, projected: Tensor, *key: object) -> Tensor:
        """Y, of X G."""
        blur = torch.randn(projected.shape, generator=keyed("release noise", *key), dtype=torch.float64)
        return ((projected + self.noise * blur) / math.sqrt(self.columns)).to(projected.dtype)

    def promise(self) -> dict[str, Any]:
        return {
            "unit": ENTRY,
            "columns": self.columns,
            "noise_deviation": self.noise,
            "epsilon_of_one_column": self.column_epsilon,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }


def in_words(promise: dict[str, Any]) -> str:
    return (
        f"{promise['columns']} columns with noise of deviation {promise['noise_deviation']:.3g}: for "
        f"{promise['unit']}, ε = {promise['epsilon']:.3g} at δ = {promise['delta']:.2g}, one in the number of people"
    )
