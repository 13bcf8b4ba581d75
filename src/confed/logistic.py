"""The loss of a row that is liked or not, and its slope, in compiled loops: this is where they stand."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled

Floats = NDArray[np.floating]

_C13, _C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3 = (1.0 / math.factorial(k) for k in range(13, 2, -1))
"""Of the series of exp."""
_ROWS_OF_A_LOGARITHM = 512
"""Their factors 1 + exp(−|s|), each at most 2, have a product that a float64 can hold."""


@compiled
def cross_entropy(scores: Floats, labels: Floats) -> float:
    """The mean over rows of softplus(score) − label · score; `scores` become its slopes."""
    total, rows = 0.0, len(scores)
    for start in range(0, rows, _ROWS_OF_A_LOGARITHM):
        some = slice(start, min(start + _ROWS_OF_A_LOGARITHM, rows))
        total += _of_some(scores[some], labels[some], 1.0 / rows)
    return total / rows


@compiled
def _of_some(scores: Floats, labels: Floats, share: float) -> float:
    """The sum over some rows; `scores` become its slopes, times `share`.

    softplus(s) = max(s, 0) + log(1 + exp(−|s|)), and the logarithms are taken at once, of a product.
    """
    total, product = 0.0, 1.0
    for j in range(len(scores)):
        score, label = float(scores[j]), float(labels[j])
        decay = _exp(-abs(score))
        product *= 1.0 + decay
        total += max(score, 0.0) - label * score
        scores[j] = share * ((1.0 if score >= 0.0 else decay) / (1.0 + decay) - label)
    return total + float(np.log(product))


@compiled
def _exp(x: float) -> float:
    """exp(x) for x ≤ 0, to fourteen digits. In plain arithmetic, so that the loop around it runs in vectors.

    2^n · exp(r) with |r| ≤ ln 2 / 2: a series, and n written into the exponent's bits.
    """
    x = max(x, -708.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693145751953125) - n * 1.42860682030941723212e-6
    high = (((((r * _C13 + _C12) * r + _C11) * r + _C10) * r + _C9) * r + _C8) * r + _C7
    series = ((((((high * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + 0.5) * r + 1.0) * r + 1.0
    return float(series * np.int64(np.int64(n + 1023.0) << 52).view(np.float64))
