"""Which phases of local training a compiled loop computes, and how it is told (`kernels/`): cross-entropy and plain SGD
on a score s = vector · Σ_k table_k[row] + bias, with FedRAP's two terms on the rows of a batch where there are two
tables; and that score itself.
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
from confed.clients.procedures import Phase, Step
from confed.clients.sampling import LocalRows
from confed.random import Stream

Floats = NDArray[np.floating]

_TERMS = (BCE.name, Apart.name, Small.name)


def fusable(backbone: Backbone, phase: Phase) -> bool:
    """Whether `train_fused` computes this phase."""
    form = backbone.bilinear
    if form is None or phase.dense or not all(_known(step, form) for step in phase.steps):
        return False
    alone = len(phase.steps) == 1
    if (form.offset or len(form.biases) > 1) and (phase.weight_decay or not alone):
        return False  # what the loop has in one piece could not be told apart
    return alone or (phase.plain and all(len(step.terms) == 1 for step in phase.steps))


def _known(step: Step, form: Bilinear) -> bool:
    first, *others = step.terms
    names = [term.name for term in step.terms]
    every = set(step.rates) == {form.vector, *form.biases, *form.tables} if others else True
    return (
        step.optimiser == "sgd"
        and type(first) is BCE
        and every
        and _alike(step, form)
        and all(_on_rows(term, form) for term in others)
        and len(names) == len(set(names))
    )


def _alike(step: Step, form: Bilinear) -> bool:
    """Whether parts that are one to the loop have rates that allow it."""
    if len(form.biases) > 1 and any(isinstance(step.rates.get(name), Tensor) for name in form.biases):
        return False
    of_table = torch.as_tensor(step.rates.get(form.tables[0], 0.0))
    return form.offset is None or torch.equal(of_table, torch.as_tensor(step.rates.get(form.offset, 0.0)))


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
    phase: Phase,
    stream: Stream,
    round_: int,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """`Cohort.train` on parameters that are changed in place.

    Returns, by term, each client's mean value over the batches of its last epoch; and, by table, what decay makes of
    the rows that are not here.
    """
    clients, terms = len(rows.clients), phase.steps[-1].terms
    laid_out = _Layout(form, params, tables)
    pace = Pace(clients, phase)
    factor, scales, losses = np.ones(clients), np.ones((len(form.tables), clients)), np.zeros((3, clients))
    for epoch in range(phase.epochs):
        train_epoch(
            *laid_out.arrays,
            laid_out.constants,
            _rates(form, phase, rows.clients),
            _weights(terms, round_),
            (phase.weight_decay, phase.batch_decay),
            rows.local.numpy(),
            rows.labels.numpy(),
            rows.order(epoch, stream),
            rows.lengths,
            phase.batch_size,
            pace.running.numpy(),
            factor,
            scales,
            losses,
        )
        if pace.finish_epoch(torch.from_numpy(losses.sum(axis=0))):
            break
    laid_out.write_back(phase)
    named = dict(zip(_TERMS, torch.from_numpy(losses), strict=True))
    decayed = dict(zip(form.tables, torch.from_numpy(scales), strict=True)) if phase.weight_decay else {}
    return {term.name: named[term.name] for term in terms}, decayed


def score_fused(
    form: Bilinear, params: Mapping[str, Tensor], tables: Mapping[str, Tensor], items: Tensor, scores: Tensor
) -> None:
    """Put the scores of each client's table rows, which are those of `items`, into its `scores` (clients, items)."""
    put_scores(*_Layout(form, params, tables).arrays, items.numpy(), scores.numpy())


class _Layout:
    """Parameters as the loop wants them: one vector, one bias, tables of the vector's width. What is stored otherwise
    is copied, and written back.

    Offsets of items are a last column of the first table, for which the vector has a constant 1. Several biases are one
    to the loop.
    """

    def __init__(self, form: Bilinear, params: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> None:
        self._form, self._params, self._tables = form, params, tables
        vector = params[form.vector]
        first, *others = (tables[name] for name in form.tables)
        if form.offset:
            vector = torch.cat([vector, torch.ones_like(vector[:, :1])], dim=1)
            first = torch.cat([first, tables[form.offset]], dim=2)
        biases = [params[name] for name in form.biases] or [vector.new_zeros(len(vector), 1)]
        bias = biases[0] if len(biases) == 1 else torch.stack(biases).sum(dim=0)
        self._before = bias if len(biases) == 1 else bias.clone()
        self._vector, self._bias, self._first = vector, bias, first
        self.arrays = (vector.numpy(), bias.numpy(), tuple(table.numpy() for table in (first, *others)))
        self.constants = int(form.offset is not None)
        """Last numbers of the vector that are no parameters."""

    def write_back(self, phase: Phase) -> None:
        form = self._form
        if form.offset:
            self._params[form.vector].copy_(self._vector[:, :-1])
            self._tables[form.tables[0]].copy_(self._first[:, :, :-1])
            self._tables[form.offset].copy_(self._first[:, :, -1:])
        if len(form.biases) > 1:
            for name in form.biases:
                self._params[name].add_(_share(name, form, phase) * (self._bias - self._before))


def _share(bias: str, form: Bilinear, phase: Phase) -> float:
    """Of what several biases move together, what this one does: as much as it has of their rates."""
    rates = {name: sum(float(step.rates.get(name, 0.0)) for step in phase.steps) for name in form.biases}
    total = sum(rates.values())
    return rates[bias] / total if total else 0.0


def _rates(form: Bilinear, phase: Phase, clients: NDArray[np.int64]) -> NDArray[np.float64]:
    """(steps, 2 + tables, clients): of vector, bias and tables; 0 where a step leaves a part alone."""
    parts = ((form.vector,), form.biases, *((name,) for name in form.tables))
    rates = np.zeros((len(phase.steps), len(parts), len(clients)))
    for number, step in enumerate(phase.steps):
        for part, names in enumerate(parts):
            for name in names:
                if name in step.rates:
                    rate = step.rates[name]
                    rates[number, part] += per_client(rate[clients] if isinstance(rate, Tensor) else rate, len(clients))
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
