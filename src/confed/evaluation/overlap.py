"""How alike two rankings are: rank-biased overlap (Webber et al. 2010), extrapolated from a prefix.

    RBO_ext = X_k/k · p^k + (1 − p)/p · Σ_{d=1}^{k} X_d/d · p^d

X_d is the number of items that the two prefixes of length d share. Cut off at depth k without extrapolation it could
not exceed 1 − p^k, which is 0.395 for the usual k = 50, p = 0.99 (D-29).
"""

from __future__ import annotations

import torch
from torch import Tensor


def rank_biased_overlap(one: Tensor, other: Tensor, p: float = 0.99) -> Tensor:
    """(n,): overlap of the rankings `one` and `other` (n, k), each the distinct item numbers of its first k places."""
    depth = torch.arange(1, one.shape[1] + 1, dtype=torch.float64)
    shared = shared_prefixes(one, other) / depth
    weights = p**depth
    return shared[:, -1] * weights[-1] + (1 - p) / p * (shared * weights).sum(dim=1)


def shared_prefixes(one: Tensor, other: Tensor) -> Tensor:
    """(n, k): how many items the first d places of both rankings have in common, for every d up to k.

    An item counts from the depth at which both rankings have reached it: the larger of its two places.
    """
    same = one[:, :, None] == other[:, None, :]
    place = torch.arange(one.shape[1])
    later = torch.maximum(place[:, None], place[None, :]).expand_as(same)
    found = torch.zeros(one.shape, dtype=torch.float64)
    row = torch.nonzero(same)[:, 0]
    found.index_put_((row, later[same]), torch.ones(len(row), dtype=torch.float64), accumulate=True)
    return found.cumsum(dim=1)
