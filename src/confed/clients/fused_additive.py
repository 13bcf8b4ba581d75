"""FedRAP's local training in one pass over memory: two tables, cross-entropy, its two terms on the rows of the batch.

The counterpart of `fused.py` for `Additive`: s = vector · (shared + own) + bias, all parameters in one SGD step, with
weight decay, rates that shrink batch by batch, and clients that stop. A row that a batch looks up several times is
stepped once, with the sum of its gradients. The tests hold it to the batched form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.backbones import Additive, Backbone
from confed.clients.objectives import BCE, Term
from confed.clients.objectives.additive import Apart, Small
from confed.clients.optim import Rate, per_client
from confed.clients.pace import Pace
from confed.clients.procedures import Procedure
from confed.clients.sampling import LocalRows
from confed.compiled import compiled
from confed.random import Stream

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def fusable_additive(backbone: Backbone, procedure: Procedure) -> bool:
    """Whether `train_additive` computes this procedure."""
    if not isinstance(backbone, Additive) or procedure.dense or len(procedure.steps) != 1:
        return False
    step = procedure.steps[0]
    stepped = set(step.rates) == {spec.name for spec in backbone.params}
    known = [type(step.terms[0]) is BCE, *(_known(term) for term in step.terms[1:])]
    return stepped and step.optimiser == "sgd" and all(known) and len(step.terms) == len({t.name for t in step.terms})


def _known(term: Term) -> bool:
    if type(term) is Apart:
        return (term.shared, term.own) == ("items", "own")
    return type(term) is Small and term.table == "items" and term.norm in ("l1", "l2")


@dataclass(frozen=True)
class _Weights:
    """Of the terms beside cross-entropy, in this round; 0 where a term is absent."""

    apart: float
    absolute: float
    square: float

    @classmethod
    def of(cls, terms: tuple[Term, ...], round_: int) -> _Weights:
        found = {"apart": 0.0, "l1": 0.0, "l2": 0.0}
        for term in terms:
            if isinstance(term, Apart):
                found["apart"] = term.weight.at(round_)
            elif isinstance(term, Small):
                found[term.norm] = term.weight.at(round_)
        return cls(found["apart"], found["l1"], found["l2"])


def train_additive(
    params: Mapping[str, Tensor],
    tables: Mapping[str, Tensor],
    rows: LocalRows,
    procedure: Procedure,
    rates: Mapping[str, Rate],
    stream: Stream,
    round_: int,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """`Cohort.train` on parameters that are changed in place.

    Returns, by term, each client's mean value over the batches of its last epoch; and, by table, what decay makes of
    the rows that are not here.
    """
    terms = procedure.steps[0].terms
    weights = _Weights.of(terms, round_)
    pace = Pace(len(rows.clients), procedure)
    factor = np.ones(len(rows.clients))
    own = {name: per_client(rate, len(rows.clients)) for name, rate in rates.items()}
    scale = {name: np.ones(len(rows.clients)) for name in tables}
    losses = np.zeros((3, len(rows.clients)))
    for epoch in range(procedure.epochs):
        _epoch(
            params["weight"].numpy(),
            params["bias"].numpy(),
            tables["items"].numpy(),
            tables["own"].numpy(),
            (own["weight"], own["bias"], own["items"], own["own"]),
            (weights.apart, weights.absolute, weights.square),
            (procedure.weight_decay, procedure.batch_decay),
            rows.local.numpy(),
            rows.labels.numpy(),
            rows.order(epoch, stream),
            rows.lengths,
            procedure.batch_size,
            pace.running.numpy(),
            factor,
            scale["items"],
            scale["own"],
            losses,
        )
        if pace.finish_epoch(torch.from_numpy(losses.sum(axis=0))):
            break
    named = dict(zip((BCE.name, Apart.name, Small.name), torch.from_numpy(losses), strict=True))
    decayed = {name: torch.from_numpy(value) for name, value in scale.items()} if procedure.weight_decay else {}
    return {term.name: named[term.name] for term in terms}, decayed


@compiled
def _epoch(
    vectors: Floats,
    biases: Floats,
    shared: Floats,
    own: Floats,
    rates: tuple[Floats, Floats, Floats, Floats],
    weights: tuple[float, float, float],
    decays: tuple[float, float],
    local: Ints,
    labels: Floats,
    order: Ints,
    lengths: Ints,
    batch_size: int,
    running: Bools,
    factor: Floats,
    shared_scale: Floats,
    own_scale: Floats,
    losses: Floats,
) -> None:
    """One pass of every client that still runs; `losses` (terms, clients) receives the means over its batches."""
    table_rows, width = shared.shape[1], shared.shape[2]
    slope, count = np.zeros(table_rows), np.zeros(table_rows)
    present = np.empty(table_rows, dtype=np.int64)
    ascent = np.empty(width)
    found = np.empty(3)
    for u in range(len(lengths)):
        if not running[u]:
            continue
        losses[:, u] = 0.0
        for start in range(0, lengths[u], batch_size):
            slots = order[u, start : min(start + batch_size, lengths[u])]
            rows, bias_slope = _gradients(
                vectors[u],
                biases[u, 0],
                shared[u],
                own[u],
                local[u],
                labels[u],
                slots,
                slope,
                count,
                present,
                ascent,
                found,
            )
            losses[0, u] += found[0]
            _step_tables(
                shared[u],
                own[u],
                vectors[u],
                (rates[2][u] * factor[u], rates[3][u] * factor[u]),
                weights,
                decays[0],
                len(slots),
                present[:rows],
                slope,
                count,
                found,
            )
            losses[1, u] += found[1]
            losses[2, u] += found[2]
            rate = rates[0][u] * factor[u]
            for c in range(width):
                vectors[u, c] -= rate * (ascent[c] + decays[0] * vectors[u, c])
            biases[u, 0] -= rates[1][u] * factor[u] * (bias_slope + decays[0] * biases[u, 0])
            shared_scale[u] *= 1.0 - rates[2][u] * factor[u] * decays[0]
            own_scale[u] *= 1.0 - rates[3][u] * factor[u] * decays[0]
            factor[u] *= decays[1]
        losses[:, u] /= (lengths[u] + batch_size - 1) // batch_size


@compiled
def _gradients(
    vector: Floats,
    bias: float,
    shared: Floats,
    own: Floats,
    local: Ints,
    labels: Floats,
    slots: Ints,
    slope: Floats,
    count: Floats,
    present: Ints,
    ascent: Floats,
    found: Floats,
) -> tuple[int, float]:
    """Cross-entropy of a batch, into `found[0]`; how many table rows it looks up, and its gradient by the bias.

    For each of these rows, listed in `present`, `slope` receives the gradient by its score and `count` its number.
    """
    ascent[:] = 0.0
    total = bias_slope = 0.0
    rows = 0
    for j in range(len(slots)):
        r, label = local[slots[j]], labels[slots[j]]
        score = float(bias)
        for c in range(len(vector)):
            score += vector[c] * (shared[r, c] + own[r, c])
        decay = np.exp(-abs(score))
        total += max(score, 0.0) - label * score + np.log1p(decay)
        gradient = ((1.0 if score >= 0.0 else decay) / (1.0 + decay) - label) / len(slots)
        bias_slope += gradient
        for c in range(len(vector)):
            ascent[c] += gradient * (shared[r, c] + own[r, c])
        if count[r] == 0.0:
            present[rows] = r
            rows += 1
        slope[r] += gradient
        count[r] += 1.0
    found[0] = total / len(slots)
    return rows, bias_slope


@compiled
def _step_tables(
    shared: Floats,
    own: Floats,
    vector: Floats,
    rates: tuple[float, float],
    weights: tuple[float, float, float],
    decay: float,
    batch: int,
    present: Ints,
    slope: Floats,
    count: Floats,
    found: Floats,
) -> None:
    """Step both tables, clear `slope` and `count`, and put the values of the two terms into `found[1:]`."""
    apart, absolute, square = weights
    width = len(vector)
    distance = size = 0.0
    if decay != 0.0:
        shared_left, own_left = 1.0 - rates[0] * decay, 1.0 - rates[1] * decay
    else:
        shared_left = own_left = 1.0
    for r in present:
        share = count[r] / (batch * width)
        for c in range(width):
            difference = float(own[r, c] - shared[r, c])
            x = float(shared[r, c])
            distance += share * difference * difference
            size += share * (absolute * abs(x) + square * x * x)
            pull = slope[r] * vector[c]
            apart_pull = share * 2.0 * apart * difference
            small_pull = share * (absolute * np.sign(x) + 2.0 * square * x)
            shared[r, c] = x * shared_left - rates[0] * (pull + apart_pull + small_pull)
            own[r, c] = own[r, c] * own_left - rates[1] * (pull - apart_pull)
    if decay != 0.0:
        for r in range(shared.shape[0]):
            if count[r] == 0.0:
                for c in range(width):
                    shared[r, c] *= shared_left
                    own[r, c] *= own_left
    for r in present:
        slope[r] = 0.0
        count[r] = 0.0
    found[1] = -apart * distance
    found[2] = size
