"""MF: matrix factorisation of implicit feedback in one place (Koren et al. 2009; decisions.md "mf").

    s_ui = P[u] · Q[i],    minimise the mean over rows of  softplus(s) − y·s

on every training positive (y = 1) and q sampled negatives (y = 0) for each, redrawn every epoch, with Adam.
Koren's loss is squared error on ratings and has biases; the papers that compare with "MF" on implicit data
give no loss, and we take cross-entropy without biases (D-7). Negatives come from outside
`TrainingData.excluded`, so the protocol decides whether they avoid the held-out items.

The gradient is written out, ∂/∂P[u] = (σ(s) − y) / B · Q[i] and likewise for Q, and an epoch is one compiled loop. Adam
moves every row in every step, by momentum where the batch has none of it; here a row makes up for these steps when it
is looked up next, so that a batch touches its own rows only.

Who has nothing to train on, a cold user, is scored with the mean of all others' vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from confed.adam import ADAM, Constants, adam_schedule, adam_step, adam_without_gradient
from confed.compiled import compiled
from confed.data.split import TrainingData
from confed.initial import initial, normal
from confed.logistic import cross_entropy
from confed.models.base import PointwiseConfig, PointwiseModel
from confed.scoring import Scorer, dot_scorer

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Both = tuple[Floats, Floats]
"""One of users, one of items."""


class MFConfig(PointwiseConfig):
    """Defaults: those of CoFedRec's comparison."""


class MFModel(PointwiseModel):
    """A user table and an item table."""

    def __init__(self, config: MFConfig, data: TrainingData, seed: int, dtype: str) -> None:
        draw = normal(config.init_deviation)
        params = {
            "users": initial(seed, "users", (data.users, config.dim), draw),
            "items": initial(seed, "items", (data.items, config.dim), draw),
        }
        super().__init__(data, seed, dtype, params, config)

    def epoch(self, number: int) -> float:
        users, items, labels = self.rows(number)
        moments = [self.learner.moments(name) for name in ("users", "items")]
        loss = _train_epoch(
            (self.params["users"].numpy(), self.params["items"].numpy()),
            (moments[0]["exp_avg"].numpy(), moments[1]["exp_avg"].numpy()),
            (moments[0]["exp_avg_sq"].numpy(), moments[1]["exp_avg_sq"].numpy()),
            (users.numpy(), items.numpy()),
            labels.numpy(),
            self.batch_size,
            self.learner.rate,
            int(moments[0]["step"]),
            ADAM,
        )
        for moment in moments:
            moment["step"] += -(-len(labels) // self.batch_size)
        return loss

    def scorer(self) -> Scorer:
        return dot_scorer(self.for_scoring(self.params["users"]).clone(), self.params["items"])

    def item_vectors(self) -> Tensor:
        return self.params["items"]


@compiled
def _train_epoch(
    params: Both,
    firsts: Both,
    seconds: Both,
    rows: tuple[Ints, Ints],
    labels: Floats,
    batch_size: int,
    rate: float,
    done: int,
    constants: Constants,
) -> float:
    """The mean loss of the rows, each before the step it takes part in; everything is changed in place.

    Of users and items: parameters, both moments, and which of them the rows are about. `done` are the steps before.
    """
    steps, total = -(-len(labels) // batch_size), 0.0
    schedule = adam_schedule(rate, done, steps, constants)
    gradients = (np.zeros_like(params[0]), np.zeros_like(params[1]))
    taken = (np.zeros(len(params[0]), np.int64), np.zeros(len(params[1]), np.int64))
    for step in range(steps):
        some = slice(step * batch_size, min((step + 1) * batch_size, len(labels)))
        users, items = rows[0][some], rows[1][some]
        for side in range(2):
            chosen = rows[side][some]
            _make_up(params[side], firsts[side], seconds[side], chosen, taken[side], step, schedule, constants)
        slopes = _scores(params, users, items)
        total += cross_entropy(slopes, labels[some]) * len(slopes)
        _add_gradients(params, users, items, slopes, gradients)
        now = (schedule[0][step], schedule[1][step])
        for side in range(2):
            chosen, gradient = rows[side][some], gradients[side]
            _step(params[side], gradient, firsts[side], seconds[side], chosen, taken[side], step, now, constants)
    for side in range(2):
        everybody = np.arange(len(params[side]))
        _make_up(params[side], firsts[side], seconds[side], everybody, taken[side], steps, schedule, constants)
    return total / len(labels)


@compiled
def _make_up(
    table: Floats,
    first: Floats,
    second: Floats,
    rows: Ints,
    taken: Ints,
    until: int,
    schedule: Both,
    constants: Constants,
) -> None:
    """Take the steps before `until` that the rows have not taken yet."""
    rates, corrections = schedule
    room = np.empty(table.shape[1], table.dtype)
    for r in rows:
        missed = slice(taken[r], until)
        adam_without_gradient(table[r], first[r], second[r], room, rates[missed], corrections[missed], constants)
        taken[r] = until


@compiled
def _step(
    table: Floats,
    gradient: Floats,
    first: Floats,
    second: Floats,
    rows: Ints,
    taken: Ints,
    step: int,
    now: tuple[float, float],
    constants: Constants,
) -> None:
    """Each row once, however often it is named; its gradient is zero afterwards."""
    for r in rows:
        if taken[r] == step:
            adam_step(table[r], gradient[r], first[r], second[r], now[0], now[1], constants)
            gradient[r] = 0.0
            taken[r] = step + 1


@compiled
def _scores(params: Both, users: Ints, items: Ints) -> Floats:
    found = np.empty(len(users), params[0].dtype)
    of_users, of_items = params
    for j in range(len(users)):
        u, i = users[j], items[j]
        score = found.dtype.type(0.0)
        for c in range(of_users.shape[1]):
            score += of_users[u, c] * of_items[i, c]
        found[j] = score
    return found


@compiled
def _add_gradients(params: Both, users: Ints, items: Ints, slopes: Floats, gradients: Both) -> None:
    of_users, of_items = params
    by_users, by_items = gradients
    for j in range(len(slopes)):
        u, i, slope = users[j], items[j], slopes[j]
        for c in range(of_users.shape[1]):
            by_users[u, c] += slope * of_items[i, c]
            by_items[i, c] += slope * of_users[u, c]
