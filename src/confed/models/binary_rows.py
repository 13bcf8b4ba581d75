"""Rows of zeros and ones that are never written out: how autoencoders read users, and write them again.

The first layer adds up the rows of its weights that belong to a user's items, dropout strikes out ones (striking out
zeros changes nothing), and the cross-entropy of a row needs the logits alone:

    Σ_i BCE(x̂_i, x_i) = Σ_i softplus(x̂_i) − Σ_{i: x_i = 1} x̂_i
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from confed.ragged import Ragged


def dropout_factors(shape: tuple[int, ...], rate: float, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """0 with probability `rate`, else 1 / (1 − rate)."""
    kept = torch.rand(shape, generator=generator, dtype=torch.float64) >= rate
    return kept.to(dtype) / (1 - rate)


def summed(rows: Ragged, table: Tensor, rate: float, dropout: torch.Generator | None) -> Tensor:
    """X · table, where X has a one at every place that `rows` lists, or what dropout leaves of it."""
    factors = dropout_factors(rows.values.shape, rate, dropout, table.dtype) if dropout else None
    return functional.embedding_bag(
        torch.from_numpy(rows.values),
        table,
        torch.from_numpy(rows.offsets),
        mode="sum",
        per_sample_weights=factors,
        include_last_offset=True,
    )


def reconstruction(logits: Tensor, rows: Ragged) -> Tensor:
    """The cross-entropy with rows of zeros and ones, summed over users and items; `rows` lists the ones."""
    ones = logits[torch.from_numpy(rows.row_of), torch.from_numpy(rows.values)]
    return functional.softplus(logits).sum() - ones.sum()
