"""Compiled loops of local training, for every score of the form s = vector · Σ_k table_k[row] + bias.

The batched operations of `Cohort` serve every method, but each of them sends a (clients, rows, d) tensor through
memory, and threads wait for one another between them. Here a client's batches are taken one after another with its
rows in cache. The arithmetic is that of the batched form, and the tests hold the two together.

The loss of a row and its slope stand here once (`_slopes`). A row that a batch looks up several times is stepped once,
with the sum of its gradients; decay of weights reaches every row.

All compiled functions that call each other stand in one file: what was compiled earlier is found stale by the caller's
own file alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tables = tuple[Floats, ...]

_ROWS_OF_A_LOGARITHM = 512
"""Their factors 1 + exp(−|s|), each at most 2, have a product that a float64 can hold."""


@compiled
def train_epoch(
    vectors: Floats,
    biases: Floats,
    tables: Tables,
    rates: Floats,
    weights: tuple[float, float, float],
    decays: tuple[float, float],
    local: Ints,
    labels: Floats,
    order: Ints,
    lengths: Ints,
    batch_size: int,
    running: Bools,
    factor: Floats,
    scales: Floats,
    losses: Floats,
) -> None:
    """One pass of every client that still runs. `losses` (terms, clients) receives the means over its batches, of the
    last step of each.

    `rates` (steps, 2 + tables, clients) are those of vector, bias and tables; what has none in a step is left alone.
    `weights` are those of the terms on the batch's rows of two tables; `decays` that of parameters, and what a batch
    leaves of the rates. `factor` (clients,) is what is left of them now, `scales` (tables, clients) what decay has made
    of rows that are not here.
    """
    rows, width = tables[0].shape[1], tables[0].shape[2]
    slope, count = np.zeros(rows, vectors.dtype), np.zeros(rows, vectors.dtype)
    present, ascent = np.empty(rows, np.int64), np.empty(width, vectors.dtype)
    slopes, found = np.empty(batch_size, vectors.dtype), np.zeros(3)
    for u in range(len(lengths)):
        if not running[u]:
            continue
        losses[:, u] = 0.0
        for start in range(0, lengths[u], batch_size):
            slots = order[u, start : min(start + batch_size, lengths[u])]
            for step in range(len(rates)):
                rate = rates[step, :, u] * factor[u]
                found[0] = _slopes(vectors[u], biases[u, 0], tables, u, local[u], labels[u], slots, slopes)
                if rate[0] != 0.0:
                    _ascend(tables, u, local[u], slots, slopes, ascent)
                if rate[2:].any():
                    touched = present[: _by_row(local[u], slots, slopes, slope, count, present)]
                    _step_tables(tables, u, vectors[u], rate[2:], weights, decays[0], touched, slope, count, found)
                if rate[0] != 0.0:
                    _step_vector(vectors[u], ascent, rate[0], decays[0])
                biases[u, 0] -= rate[1] * (slopes[: len(slots)].sum() + decays[0] * biases[u, 0])
                scales[:, u] *= 1.0 - rate[2:] * decays[0]
            losses[:, u] += found
            factor[u] *= decays[1]
        losses[:, u] /= (lengths[u] + batch_size - 1) // batch_size


@compiled
def _slopes(
    vector: Floats, bias: float, tables: Tables, u: int, local: Ints, labels: Floats, slots: Ints, slopes: Floats
) -> float:
    """The mean cross-entropy of a batch, softplus(s) − label · s a row; `slopes` receives its gradient by each score.

    softplus(s) = max(s, 0) + log(1 + exp(−|s|)); of many rows the logarithms are taken at once, of a product.
    """
    total, product, rows = 0.0, 1.0, len(slots)
    for j in range(rows):
        r, label = local[slots[j]], labels[slots[j]]
        score = bias
        for k in range(len(tables)):
            table = tables[k]
            for c in range(len(vector)):
                score += vector[c] * table[u, r, c]
        decay = np.exp(-abs(score))
        product *= 1.0 + decay
        if j % _ROWS_OF_A_LOGARITHM == _ROWS_OF_A_LOGARITHM - 1:
            total += np.log(product)
            product = 1.0
        total += max(score, 0.0) - label * score
        slopes[j] = ((1.0 if score >= 0.0 else decay) / (1.0 + decay) - label) / rows
    return float((total + np.log(product)) / rows)


@compiled
def _ascend(tables: Tables, u: int, local: Ints, slots: Ints, slopes: Floats, ascent: Floats) -> None:
    """`ascent` receives the gradient by the vector."""
    ascent[:] = 0.0
    for k in range(len(tables)):
        table = tables[k]
        for j in range(len(slots)):
            r, slope = local[slots[j]], slopes[j]
            for c in range(len(ascent)):
                ascent[c] += slope * table[u, r, c]


@compiled
def _by_row(local: Ints, slots: Ints, slopes: Floats, slope: Floats, count: Floats, present: Ints) -> int:
    """How many table rows the batch looks up. They are listed in `present`; of each of them `slope` receives the
    gradient by its score, and `count` how often it is looked up.
    """
    rows = 0
    for j in range(len(slots)):
        r = local[slots[j]]
        if count[r] == 0.0:
            present[rows] = r
            rows += 1
        slope[r] += slopes[j]
        count[r] += 1.0
    return rows


@compiled
def _step_vector(vector: Floats, ascent: Floats, rate: float, decay: float) -> None:
    own, left = vector.dtype.type(rate), vector.dtype.type(1.0 - rate * decay)
    for c in range(len(vector)):
        vector[c] = left * vector[c] - own * ascent[c]


@compiled
def _step_tables(
    tables: Tables,
    u: int,
    vector: Floats,
    rates: Floats,
    weights: tuple[float, float, float],
    decay: float,
    present: Ints,
    slope: Floats,
    count: Floats,
    found: Floats,
) -> None:
    """Step all tables that have a rate, and clear `slope` and `count`; values of terms on rows go to `found[1:]`."""
    last = len(tables) - 1
    if decay != 0.0:
        for k in range(len(tables)):
            _decay_others(tables[k], u, 1.0 - rates[k] * decay, count)
    if weights[0] != 0.0 or weights[1] != 0.0 or weights[2] != 0.0:
        _step_pair(tables[0], tables[last], u, vector, rates, weights, decay, present, slope, count, found)
    else:
        for k in range(len(tables)):
            if rates[k] != 0.0:
                _step_rows(tables[k], u, vector, rates[k], decay, present, slope)
    for r in present:
        slope[r] = 0.0
        count[r] = 0.0


@compiled
def _decay_others(table: Floats, u: int, left: float, count: Floats) -> None:
    """Rows that no one looked up."""
    own = table.dtype.type(left)
    for r in range(table.shape[1]):
        if count[r] == 0.0:
            for c in range(table.shape[2]):
                table[u, r, c] *= own


@compiled
def _step_rows(table: Floats, u: int, vector: Floats, rate: float, decay: float, present: Ints, slope: Floats) -> None:
    own, left = table.dtype.type(rate), table.dtype.type(1.0 - rate * decay)
    for r in present:
        pull = own * slope[r]
        for c in range(len(vector)):
            table[u, r, c] = left * table[u, r, c] - pull * vector[c]


@compiled
def _step_pair(
    shared: Floats,
    own: Floats,
    u: int,
    vector: Floats,
    rates: Floats,
    weights: tuple[float, float, float],
    decay: float,
    present: Ints,
    slope: Floats,
    count: Floats,
    found: Floats,
) -> None:
    """Rows of two tables, with terms that keep them apart and the shared one small (`objectives/additive.py`)."""
    apart, absolute, square = weights
    shared_left, own_left = 1.0 - rates[0] * decay, 1.0 - rates[1] * decay
    width, looked_up = len(vector), 0.0
    for r in present:
        looked_up += count[r]
    distance = size = 0.0
    for r in present:
        share = count[r] / (looked_up * width)
        for c in range(width):
            x, y = float(shared[u, r, c]), float(own[u, r, c])
            difference = y - x
            distance += share * difference * difference
            size += share * (absolute * abs(x) + square * x * x)
            pull = slope[r] * vector[c]
            away = share * 2.0 * apart * difference
            smaller = share * (absolute * np.sign(x) + 2.0 * square * x)
            shared[u, r, c] = x * shared_left - rates[0] * (pull + away + smaller)
            own[u, r, c] = y * own_left - rates[1] * (pull - away)
    found[1] = -apart * distance
    found[2] = size
