"""Scores of the form s = vector · Σ_k table_k[row] + bias, stepped by SGD.

A row that a batch looks up several times is stepped once, with the sum of its gradients; decay of weights reaches every
row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled
from confed.logistic import cross_entropy

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tables = tuple[Floats, ...]


@compiled
def train_epoch(
    vectors: Floats,
    biases: Floats,
    tables: Tables,
    constants: int,
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

    The last `constants` of a vector's numbers stay as they are. `rates` (steps, 2 + tables, clients) are those of
    vector, bias and tables; what has none in a step is left alone. `weights` are those of the terms on the batch's rows
    of two tables; `decays` that of parameters, and what a batch leaves of the rates. `factor` (clients,) is what is
    left of them now, `scales` (tables, clients) what decay has made of rows that are not here.
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
            looked_up, wanted, of_rows = local[u][slots], labels[u][slots], slopes[: len(slots)]
            for step in range(len(rates)):
                rate = rates[step, :, u] * factor[u]
                found[0] = slopes_of(vectors[u], biases[u, 0], tables, u, looked_up, wanted, of_rows)
                if rate[0] != 0.0:
                    ascend(tables, u, looked_up, of_rows, ascent)
                if rate[2:].any():
                    touched = present[: _by_row(looked_up, of_rows, slope, count, present)]
                    _step_tables(tables, u, vectors[u], rate[2:], weights, decays[0], touched, slope, count, found)
                if rate[0] != 0.0:
                    _step_vector(vectors[u, : width - constants], ascent, rate[0], decays[0])
                biases[u, 0] -= rate[1] * (of_rows.sum() + decays[0] * biases[u, 0])
                scales[:, u] *= 1.0 - rate[2:] * decays[0]
            losses[:, u] += found
            factor[u] *= decays[1]
        losses[:, u] /= (lengths[u] + batch_size - 1) // batch_size


@compiled
def slopes_of(
    vector: Floats, bias: float, tables: Tables, u: int, looked_up: Ints, labels: Floats, slopes: Floats
) -> float:
    """The mean cross-entropy of a batch; `slopes` receives its gradient by each score."""
    slopes[:] = bias
    for k in range(len(tables)):
        add_scores(vector, tables[k], u, looked_up, slopes)
    return cross_entropy(slopes, labels)


@compiled
def add_scores(vector: Floats, table: Floats, u: int, looked_up: Ints, scores: Floats) -> None:
    for j in range(len(looked_up)):
        r, score = looked_up[j], scores[j]
        for c in range(len(vector)):
            score += vector[c] * table[u, r, c]
        scores[j] = score


@compiled
def ascend(tables: Tables, u: int, looked_up: Ints, slopes: Floats, ascent: Floats) -> None:
    """`ascent` receives the gradient by the vector."""
    ascent[:] = 0.0
    for k in range(len(tables)):
        table = tables[k]
        for j in range(len(looked_up)):
            r, slope = looked_up[j], slopes[j]
            for c in range(len(ascent)):
                ascent[c] += slope * table[u, r, c]


@compiled
def _by_row(looked_up: Ints, slopes: Floats, slope: Floats, count: Floats, present: Ints) -> int:
    """How many table rows the batch looks up. They are listed in `present`; of each of them `slope` receives the
    gradient by its score, and `count` how often it is looked up.
    """
    rows = 0
    for j in range(len(looked_up)):
        r = looked_up[j]
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
    kind = shared.dtype.type
    apart, absolute, square = kind(weights[0]), kind(weights[1]), kind(weights[2])
    shared_rate, own_rate = kind(rates[0]), kind(rates[1])
    shared_left, own_left = kind(1.0 - rates[0] * decay), kind(1.0 - rates[1] * decay)
    looked_up = 0.0
    for r in present:
        looked_up += count[r]
    found[1:] = 0.0
    for r in present:
        share = kind(count[r] / (looked_up * len(vector)))
        distance = size = kind(0.0)
        for c in range(len(vector)):
            x, y = shared[u, r, c], own[u, r, c]
            away = y - x
            sign = kind(1.0 if x > 0.0 else 0.0) - kind(1.0 if x < 0.0 else 0.0)
            distance += away * away
            size += absolute * abs(x) + square * x * x
            pull = slope[r] * vector[c]
            push = share * (apart + apart) * away
            smaller = share * (absolute * sign + (square + square) * x)
            shared[u, r, c] = x * shared_left - shared_rate * (pull + push + smaller)
            own[u, r, c] = y * own_left - own_rate * (pull - push)
        found[1] -= apart * share * distance
        found[2] += share * size


@compiled
def put_scores(vectors: Floats, biases: Floats, tables: Tables, items: Ints, scores: Floats) -> None:
    """Each client's scores of its own table rows, which are those of `items`, among its scores of all; beyond them is
    padding.
    """
    for u in range(len(scores)):
        vector = vectors[u]
        for j in range(items.shape[1]):
            if items[u, j] < scores.shape[1]:
                score = biases[u, 0]
                for k in range(len(tables)):
                    row = tables[k][u, j]
                    for c in range(len(vector)):
                        score += vector[c] * row[c]
                scores[u, items[u, j]] = score
