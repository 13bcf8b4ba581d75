"""Which local procedures a compiled loop computes, and how it is told (`kernels/`): cross-entropy and plain SGD on a
score s = vector · Σ_k table_k[row] + bias, with FedRAP's two terms on the rows of a batch where there are two tables;
and that score itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.backbones import Backbone, Bilinear
from confed.clients.kernels import put_scores, train_epoch
from confed.clients.objectives import BCE, Term
from confed.clients.objectives.additive import Apart, Small
from confed.clients.optim import per_client
from confed.clients.pace import Pace
from confed.clients.procedures import Procedure, Step
from confed.clients.sampling import LocalRows
from confed.random import Stream

Floats = NDArray[np.floating]

_TERMS = (BCE.name, Apart.name, Small.name)


def fusable(backbone: Backbone, procedure: Procedure) -> bool:
    """Whether `train_fused` computes this procedure."""
    form = backbone.bilinear
    if form is None or procedure.dense or not all(_known(step, form) for step in procedure.steps):
        return False
    alone = len(procedure.steps) == 1
    return alone or (procedure.plain and all(len(step.terms) == 1 for step in procedure.steps))


def _known(step: Step, form: Bilinear) -> bool:
    first, *others = step.terms
    names = [term.name for term in step.terms]
    every = set(step.rates) == {form.vector, form.bias, *form.tables} if others else True
    return (
        step.optimiser == "sgd"
        and type(first) is BCE
        and every
        and all(_on_rows(term, form) for term in others)
        and len(names) == len(set(names))
    )


def _on_rows(term: Term, form: Bilinear) -> bool:
    """Whether it is one of the two terms on the rows of a batch that the loop knows."""
    if type(term) is Apart:
        return (term.shared, term.own) == form.tables
    return type(term) is Small and (term.table, *form.tables[1:]) == form.tables and term.norm in ("l1", "l2")


def train_fused(
    form: Bilinear,
    params: Mapping[str, Tensor],
    tables: Mapping[str, Tensor],
    rows: LocalRows,
    procedure: Procedure,
    stream: Stream,
    round_: int,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """`Cohort.train` on parameters that are changed in place.

    Returns, by term, each client's mean value over the batches of its last epoch; and, by table, what decay makes of
    the rows that are not here.
    """
    clients, terms = len(rows.clients), procedure.steps[-1].terms
    vector, bias = _vector_and_bias(form, params)
    pace = Pace(clients, procedure)
    factor, scales, losses = np.ones(clients), np.ones((len(form.tables), clients)), np.zeros((3, clients))
    for epoch in range(procedure.epochs):
        train_epoch(
            vector,
            bias,
            tuple(tables[name].numpy() for name in form.tables),
            _rates(form, procedure, rows.clients),
            _weights(terms, round_),
            (procedure.weight_decay, procedure.batch_decay),
            rows.local.numpy(),
            rows.labels.numpy(),
            rows.order(epoch, stream),
            rows.lengths,
            procedure.batch_size,
            pace.running.numpy(),
            factor,
            scales,
            losses,
        )
        if pace.finish_epoch(torch.from_numpy(losses.sum(axis=0))):
            break
    named = dict(zip(_TERMS, torch.from_numpy(losses), strict=True))
    decayed = dict(zip(form.tables, torch.from_numpy(scales), strict=True)) if procedure.weight_decay else {}
    return {term.name: named[term.name] for term in terms}, decayed


def score_fused(
    form: Bilinear, params: Mapping[str, Tensor], tables: Mapping[str, Tensor], items: Tensor, scores: Tensor
) -> None:
    """Put the scores of each client's table rows, which are those of `items`, into its `scores` (clients, items)."""
    own = tuple(tables[name].numpy() for name in form.tables)
    put_scores(*_vector_and_bias(form, params), own, items.numpy(), scores.numpy())


def _vector_and_bias(form: Bilinear, params: Mapping[str, Tensor]) -> tuple[Floats, Floats]:
    vector = params[form.vector]
    bias = params[form.bias] if form.bias else vector.new_zeros(len(vector), 1)
    return vector.numpy(), bias.numpy()


def _rates(form: Bilinear, procedure: Procedure, clients: NDArray[np.int64]) -> NDArray[np.float64]:
    """(steps, 2 + tables, clients): of vector, bias and tables; 0 where a step leaves a part alone."""
    parts = (form.vector, form.bias, *form.tables)
    rates = np.zeros((len(procedure.steps), len(parts), len(clients)))
    for number, step in enumerate(procedure.steps):
        for part, name in enumerate(parts):
            if name is not None and name in step.rates:
                rate = step.rates[name]
                rates[number, part] = per_client(rate[clients] if isinstance(rate, Tensor) else rate, len(clients))
    return rates


def _weights(terms: tuple[Term, ...], round_: int) -> tuple[float, float, float]:
    """Of the terms beside cross-entropy in this round, apart, l1 and l2; 0 where one is absent."""
    found = {"apart": 0.0, "l1": 0.0, "l2": 0.0}
    for term in terms:
        if isinstance(term, Apart):
            found["apart"] = term.weight.at(round_)
        elif isinstance(term, Small):
            found[term.norm] = term.weight.at(round_)
    return found["apart"], found["l1"], found["l2"]
