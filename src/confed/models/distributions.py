"""Preference distributions: diagonal Gaussians, as points of a flat space.

The squared 2-Wasserstein distance of diagonal Gaussians is |μ_a − μ_b|² + |σ_a − σ_b|²: the map to the point [μ ; σ] is
an isometry. Barycentres are means of points, cluster distributions weighted means, and every formula of FPPDM is one of
squared distances between points. A deterministic model has points without the second half.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

SMALLEST = 1e-4
"""Added to deviations, which softplus keeps positive only in exact arithmetic (D-35)."""


def points(mean: Tensor, raw: Tensor | None) -> Tensor:
    """[μ ; softplus(raw) + 1e-4], or μ alone."""
    return mean if raw is None else torch.cat([mean, functional.softplus(raw) + SMALLEST], dim=-1)


def named(rows: Tensor, dim: int) -> dict[str, Tensor]:
    """Points by the names under which they travel."""
    parts = {"mean": rows[:, :dim]}
    return parts if rows.shape[1] == dim else parts | {"deviation": rows[:, dim:]}


def unnamed(rows: Mapping[str, Tensor]) -> Tensor:
    """The inverse of `named`."""
    return torch.cat([rows[name] for name in ("mean", "deviation") if name in rows], dim=1)


def squared_distances(one: Tensor, other: Tensor) -> Tensor:
    """(n, m): between all pairs of points; never negative.

    From their common middle: untrained deviations are all near softplus(0), and squares of that size would swallow the
    differences in single precision.
    """
    middle = other.detach().mean(dim=0)
    one, other = one - middle, other - middle
    products = one @ other.T
    return (one.square().sum(dim=1)[:, None] - 2 * products + other.square().sum(dim=1)).clamp_min(0)
