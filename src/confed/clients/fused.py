"""Local training in one pass over memory, for the clients of most methods: s = vector · row + bias, cross-entropy, SGD.

The batched operations of `Cohort` serve every method, but each of them sends a (clients, rows, d) tensor through
memory, and threads wait for one another between them. Here a client's batches are taken one after another with its
rows in cache. The arithmetic is that of the batched form, and the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.backbones import Backbone, Bilinear
from confed.clients.objectives import BCE
from confed.clients.procedures import Procedure
from confed.clients.sampling import LocalRows
from confed.compiled import compiled
from confed.random import Stream

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


def fusable(backbone: Backbone, procedure: Procedure) -> bool:
    """Whether `train_fused` computes this procedure."""
    plain = (
        procedure.plain
        and not procedure.dense
        and all(
            step.optimiser == "sgd" and len(step.terms) == 1 and type(step.terms[0]) is BCE for step in procedure.steps
        )
    )
    return plain and backbone.bilinear is not None


def train_fused(
    form: Bilinear,
    params: Mapping[str, Tensor],
    tables: Mapping[str, Tensor],
    rows: LocalRows,
    procedure: Procedure,
    stream: Stream,
) -> Tensor:
    """`Cohort.train` on parameters that are changed in place; each client's mean loss over its last epoch's batches."""
    vector, table = params[form.vector], tables[form.table]
    bias = params[form.bias] if form.bias else vector.new_zeros(len(vector), 1)
    rates = _rates(form, procedure, rows.clients, vector.dtype)
    losses = np.zeros(len(rows.clients))
    for epoch in range(procedure.epochs):
        _epoch(
            vector.numpy(),
            bias.numpy(),
            table.numpy(),
            rates,
            rows.local.numpy(),
            rows.labels.numpy(),
            rows.order(epoch, stream),
            rows.lengths,
            procedure.batch_size,
            losses,
        )
    return torch.from_numpy(losses)


def _rates(form: Bilinear, procedure: Procedure, clients: Ints, dtype: torch.dtype) -> Floats:
    """(steps, 3, clients): the rates of vector, bias and table; 0 where a step leaves a part alone."""
    rates = torch.zeros(len(procedure.steps), 3, len(clients), dtype=dtype)
    for number, step in enumerate(procedure.steps):
        for part, name in enumerate((form.vector, form.bias, form.table)):
            rate = step.rates.get(name, 0.0) if name else 0.0
            rates[number, part] = rate[clients] if isinstance(rate, Tensor) else rate
    found: Floats = rates.numpy()
    return found


@compiled
def _epoch(
    vectors: Floats,
    biases: Floats,
    tables: Floats,
    rates: Floats,
    local: Ints,
    labels: Floats,
    order: Ints,
    lengths: Ints,
    batch_size: int,
    losses: Floats,
) -> None:
    """One pass of every client over its rows; `losses` receives the means of the last step's loss."""
    slope = np.empty(batch_size, dtype=vectors.dtype)
    ascent = np.empty(vectors.shape[1], dtype=vectors.dtype)
    for u in range(len(lengths)):
        losses[u] = 0.0
        for start in range(0, lengths[u], batch_size):
            slots = order[u, start : min(start + batch_size, lengths[u])]
            for step in range(len(rates)):
                loss = _gradients(vectors[u], biases[u, 0], tables[u], local[u], labels[u], slots, slope, ascent)
                if rates[step, 2, u] != 0.0:
                    _step_rows(tables[u], local[u], slots, slope, vectors[u], rates[step, 2, u])
                vectors[u] -= rates[step, 0, u] * ascent
                biases[u, 0] -= rates[step, 1, u] * slope[: len(slots)].sum()
            losses[u] += loss
        losses[u] /= (lengths[u] + batch_size - 1) // batch_size


@compiled
def _gradients(
    vector: Floats,
    bias: float,
    table: Floats,
    local: Ints,
    labels: Floats,
    slots: Ints,
    slope: Floats,
    ascent: Floats,
) -> float:
    """The mean cross-entropy of a batch; `slope` receives its gradient by each score, `ascent` that by the vector."""
    ascent[:] = 0.0
    total = 0.0
    for j in range(len(slots)):
        row, label = table[local[slots[j]]], labels[slots[j]]
        score = bias
        for c in range(len(vector)):
            score += vector[c] * row[c]
        decay = np.exp(-abs(score))
        total += max(score, 0.0) - label * score + np.log1p(decay)
        probability = (1.0 if score >= 0.0 else decay) / (1.0 + decay)
        slope[j] = (probability - label) / len(slots)
        for c in range(len(vector)):
            ascent[c] += slope[j] * row[c]
    return total / len(slots)


@compiled
def _step_rows(table: Floats, local: Ints, slots: Ints, slope: Floats, vector: Floats, rate: float) -> None:
    for j in range(len(slots)):
        row, factor = table[local[slots[j]]], rate * slope[j]
        for c in range(len(vector)):
            row[c] -= factor * vector[c]
