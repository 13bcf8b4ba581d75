"""A tower on the rows of one table beside a product with another, stepped by Adam: FedNCF.

All that a client trains but its tables lies in one vector (`flat`), in the order gmf user, mlp user, weights and bias
of each layer, head, head's bias; `by` has the gradient in the same places. Adam begins anew every round, so that its
moments are those of one client, which is trained to the end before the next begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.adam import Constants, adam_step
from confed.clients.kernels.bilinear import add_scores, ascend
from confed.compiled import compiled
from confed.logistic import cross_entropy

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


@compiled
def train_tower_epochs(
    flat: Floats,
    gmf_items: Floats,
    mlp_items: Floats,
    tower: Ints,
    rates: Floats,
    adam: Constants,
    local: Ints,
    labels: Floats,
    orders: Ints,
    lengths: Ints,
    sizes: Ints,
    batch_size: int,
    losses: Floats,
) -> None:
    """All epochs of one client after another; `losses` (1, clients) receives the means over the last one's batches.

    `tower` holds the widths of the layers, `adam` both betas and epsilon; of a client's tables, `sizes` rows are real.
    """
    width, kind = mlp_items.shape[2], flat.dtype
    starts = _starts(gmf_items.shape[2], width, tower)
    by = np.empty(flat.shape[1], kind)
    for u in range(len(lengths)):
        rows, gmf, mlp = sizes[u], gmf_items[u], mlp_items[u]
        by_gmf, by_mlp = np.zeros((rows, gmf.shape[1]), kind), np.zeros((rows, width), kind)
        moments, gmf_moments = np.zeros((2, len(by)), kind), np.zeros((2, *by_gmf.shape), kind)
        mlp_moments = np.zeros((2, *by_mlp.shape), kind)
        seen, step = np.zeros(rows, np.bool_), 0
        for epoch in range(len(orders)):
            losses[0, u] = 0.0
            for start in range(0, lengths[u], batch_size):
                slots = orders[epoch, u, start : min(start + batch_size, lengths[u])]
                looked_up = local[u][slots]
                losses[0, u] += _tower_gradient(
                    flat[u], by, gmf, mlp, by_gmf, by_mlp, tower, starts, looked_up, labels[u][slots]
                )
                for r in looked_up:
                    seen[r] = True
                step += 1
                rate, correction = rates[u] / (1.0 - adam[0] ** step), (1.0 - adam[1] ** step) ** -0.5
                adam_step(flat[u], by, moments[0], moments[1], rate, correction, adam)
                for r in range(rows):
                    if seen[r]:  # who was looked up once keeps moving
                        adam_step(gmf[r], by_gmf[r], gmf_moments[0, r], gmf_moments[1, r], rate, correction, adam)
                        adam_step(mlp[r], by_mlp[r], mlp_moments[0, r], mlp_moments[1, r], rate, correction, adam)
                for r in looked_up:
                    by_gmf[r] = 0.0
                    by_mlp[r] = 0.0
        losses[0, u] /= (lengths[u] + batch_size - 1) // batch_size


@compiled
def _starts(gmf_width: int, width: int, tower: Ints) -> Ints:
    """Where the parts of `flat` begin: gmf user, mlp user, weights and bias of each layer, head, its bias."""
    starts, inputs = np.zeros(4 + 2 * len(tower), np.int64), 2 * width
    starts[1], starts[2] = gmf_width, gmf_width + width
    for layer in range(len(tower)):
        starts[3 + 2 * layer] = starts[2 + 2 * layer] + tower[layer] * inputs
        starts[4 + 2 * layer] = starts[3 + 2 * layer] + tower[layer]
        inputs = tower[layer]
    starts[-1] = starts[-2] + gmf_width + inputs
    return starts


@compiled
def _tower_gradient(
    flat: Floats,
    by: Floats,
    gmf: Floats,
    mlp: Floats,
    by_gmf: Floats,
    by_mlp: Floats,
    tower: Ints,
    starts: Ints,
    looked_up: Ints,
    labels: Floats,
) -> float:
    """The mean cross-entropy of a batch; `by` receives its gradient, that by the rows of tables is added to theirs."""
    wide, table = gmf.shape[1], gmf.reshape((1, *gmf.shape))
    users, head = (flat[: starts[1]], flat[starts[1] : starts[2]]), flat[starts[-2] : starts[-1]]
    hidden = _through_layers(flat, tower, starts, _side_by_side(users[1], mlp, looked_up))
    slopes = np.dot(hidden[-1], head[wide:]) + flat[starts[-1]]
    product, ascent = users[0] * head[:wide], np.empty(wide, flat.dtype)
    add_scores(product, table, 0, looked_up, slopes)
    loss = cross_entropy(slopes, labels)
    ascend((table,), 0, looked_up, slopes, ascent)
    by[: starts[1]] = head[:wide] * ascent
    by[starts[-2] : starts[-2] + wide] = users[0] * ascent
    by[starts[-2] + wide : starts[-1]] = np.dot(slopes, hidden[-1])
    by[starts[-1]] = slopes.sum()
    by_input = _back_through_layers(flat, by, tower, starts, hidden, np.outer(slopes, head[wide:]))
    by[starts[1] : starts[2]] = by_input[:, : len(users[1])].sum(axis=0)
    for j in range(len(looked_up)):
        r = looked_up[j]
        for c in range(wide):
            by_gmf[r, c] += slopes[j] * product[c]
        for c in range(mlp.shape[1]):
            by_mlp[r, c] += by_input[j, len(users[1]) + c]
    return loss


@compiled
def _side_by_side(user: Floats, table: Floats, chosen: Ints) -> Floats:
    """(chosen, 2 d): the user's vector, and some rows of the table."""
    width = len(user)
    found = np.empty((len(chosen), 2 * width), table.dtype)
    for j in range(len(chosen)):
        for c in range(width):
            found[j, c] = user[c]
            found[j, width + c] = table[chosen[j], c]
    return found


@compiled
def _through_layers(flat: Floats, tower: Ints, starts: Ints, rows: Floats) -> list[Floats]:
    """The rows, and what each layer makes of them."""
    hidden = [rows]
    for layer in range(len(tower)):
        weight = flat[starts[2 + 2 * layer] : starts[3 + 2 * layer]].reshape((tower[layer], hidden[layer].shape[1]))
        hidden.append(np.dot(hidden[layer], weight.T))
        _add_and_cut(hidden[layer + 1], flat[starts[3 + 2 * layer] : starts[4 + 2 * layer]])
    return hidden


@compiled
def _back_through_layers(
    flat: Floats, by: Floats, tower: Ints, starts: Ints, hidden: list[Floats], above: Floats
) -> Floats:
    """The gradient by the rows, given that by what the last layer made of them; `by` receives those of the layers."""
    for back in range(len(tower)):
        layer = len(tower) - 1 - back
        _where_positive(above, hidden[layer + 1])
        place = slice(starts[2 + 2 * layer], starts[3 + 2 * layer])
        by[place] = np.dot(above.T, hidden[layer]).reshape(-1)
        by[starts[3 + 2 * layer] : starts[4 + 2 * layer]] = above.sum(axis=0)
        above = np.dot(above, flat[place].reshape((tower[layer], hidden[layer].shape[1])))
    return above


@compiled
def _add_and_cut(table: Floats, row: Floats) -> None:
    """ReLU of the table with a row added to each of its rows."""
    zero = table.dtype.type(0.0)
    for j in range(table.shape[0]):
        for c in range(table.shape[1]):
            table[j, c] = max(table[j, c] + row[c], zero)


@compiled
def _where_positive(gradient: Floats, values: Floats) -> None:
    """The gradient through ReLU, given what it gave."""
    zero = gradient.dtype.type(0.0)
    for j in range(gradient.shape[0]):
        for c in range(gradient.shape[1]):
            gradient[j, c] = gradient[j, c] if values[j, c] > zero else zero
