"""Pairs of a positive and a negative, one after another, against item rows that stay as they were received."""

from __future__ import annotations

import numpy as np

from confed.clients.kernels.bilinear import Bools, Floats, Ints
from confed.compiled import compiled
from confed.logistic import cross_entropy


@compiled
def visit_pairs(
    vectors: Floats,
    table: Floats,
    offsets: Floats,
    rate: float,
    decays: tuple[float, float, float],
    local: Ints,
    lengths: Ints,
    told: Bools,
    losses: Floats,
) -> None:
    """Every client's pairs, which lie side by side in `local`. `losses` (clients,) receives their mean.

    Vectors are stepped pair by pair; what is made of rows and their offsets is added to them in the end, of positives
    where `told` (clients, pairs) says so. `decays` are those of the vector, of positive and of negative rows.
    """
    rows, width = table.shape[1], table.shape[2]
    change, shift = np.empty((rows, width), table.dtype), np.empty(rows, table.dtype)
    difference, won = np.empty(1, table.dtype), np.ones(1, table.dtype)
    for u in range(len(lengths)):
        change[:] = 0.0
        shift[:] = 0.0
        losses[u] = 0.0
        pairs = lengths[u] // 2
        for n in range(pairs):
            liked, other = local[u, 2 * n], local[u, 2 * n + 1]
            score = offsets[u, liked, 0] - offsets[u, other, 0]
            for c in range(width):
                score += vectors[u, c] * (table[u, liked, c] - table[u, other, c])
            difference[0] = score
            losses[u] += cross_entropy(difference, won) / pairs
            pull = -difference[0]
            shift[other] -= pull
            if told[u, n]:
                shift[liked] += pull
            for c in range(width):
                own, near, far = vectors[u, c], table[u, liked, c], table[u, other, c]
                vectors[u, c] = own + rate * (pull * (near - far) - decays[0] * own)
                change[other, c] -= pull * own + decays[2] * far
                if told[u, n]:
                    change[liked, c] += pull * own - decays[1] * near
        for r in range(rows):
            offsets[u, r, 0] += rate * shift[r]
            for c in range(width):
                table[u, r, c] += rate * change[r, c]
