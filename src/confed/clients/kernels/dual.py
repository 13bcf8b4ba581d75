"""Two tables, one of which is reshaped, and terms on whole tables: Fed3CR.

The gradient by either table as looked at is a sum of a few outer products, its own rows scaled, and one product with a
d x d matrix:

    cross-entropy   r_j u,                          r_j the summed slopes of item j
    L_a             a_j p − b_j x_j + w_j q         p the view's prototype, w_j = 1/|D| for j in D
    L_o             a product of the other table with E

so that a step reads and writes each table a few times, where the batched form sends some seventy tensors of that size
through memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.clients.kernels.bilinear import Bools, ascend, slopes_of
from confed.compiled import compiled

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


@compiled
def train_dual_epochs(
    vectors: Floats,
    biases: Floats,
    shared: Floats,
    own: Floats,
    net: tuple[Floats, ...],
    net_biases: tuple[Floats, ...],
    shape: tuple[bool, bool, bool, float, bool, bool],
    weights: tuple[float, float, float],
    rates: tuple[Floats, Floats, Floats, Floats, Floats],
    decay: float,
    local: Ints,
    labels: Floats,
    orders: Ints,
    lengths: Ints,
    batch_size: int,
    liked: Bools,
    losses: Floats,
) -> None:
    """All epochs of one client after another; `losses` (terms, clients) receives the means over the last one's batches.

    `orders` (epochs, clients, rows) says in which order an epoch takes the rows.
    """
    table, width, dtype = shared.shape[1:], shared.shape[2], shared.dtype
    reshaped, made, unified, alpha, residual, carried = shape
    alike, temperature, apart = weights
    enhanced, turned, by_enhanced = np.empty(table, dtype), np.empty(table, dtype), np.empty(table, dtype)
    by_own, by_shared, by_turned = np.empty(table, dtype), np.empty(table, dtype), np.empty(table, dtype)
    matrix, by_matrix = np.zeros((width, width), dtype), np.zeros((width, width), dtype)
    slope, prototypes, ascent = np.empty(table[0], dtype), np.empty(2 * width, dtype), np.empty(width, dtype)
    slopes = np.empty(batch_size, dtype)
    for u in range(len(lengths)):
        favourites = np.nonzero(liked[u])[0]
        chosen = favourites if carried else favourites[:0]
        factor = 1.0
        for epoch in range(len(orders)):
            losses[:, u] = 0.0
            for start in range(0, lengths[u], batch_size):
                slots = orders[epoch, u, start : min(start + batch_size, lengths[u])]
                hidden, seen, held = [prototypes], shared[u], own[u]
                if made:
                    _mean_rows(shared[u], favourites, prototypes[:width])
                    _mean_rows(own[u], favourites, prototypes[width:])
                    _generate(net, net_biases, u, hidden)
                if reshaped:
                    _fill_matrix(matrix, net[0][u], hidden[-1], made, alpha, residual)
                    np.dot(shared[u], matrix.T, enhanced)
                    seen = enhanced
                if unified:
                    np.dot(own[u], matrix.T, turned)
                    held = turned
                batch, of_rows = (local[u][slots], labels[u][slots]), slopes[: len(slots)]
                losses[0, u] += _of_views(vectors[u], biases[u, 0], seen, held, batch, of_rows, slope, ascent)
                losses[2, u] += _uncorrelate(seen, held, apart, by_enhanced, by_own)
                _add_outer(slope, vectors[u], by_enhanced, by_own)
                losses[1, u] += _consist(seen, held, favourites, alike, temperature, by_enhanced, by_own)
                if reshaped:
                    np.dot(by_enhanced, matrix, by_shared)
                    np.dot(by_enhanced.T, shared[u], by_matrix)
                if unified:
                    by_matrix += np.dot(by_own.T, own[u])
                    np.dot(by_own, matrix, by_turned)
                if made:
                    by_output = (dtype.type(alpha) * by_matrix).reshape(-1)
                    below = _step_net(net, net_biases, u, hidden, by_output, rates[4][u] * factor)
                    _add_to_rows(by_shared, chosen, below[:width])
                    _add_to_rows(by_own, chosen, below[width:])
                elif reshaped:
                    _descend(net[0][u], by_matrix, rates[4][u] * factor)
                _descend(shared[u], by_shared if reshaped else by_enhanced, rates[2][u] * factor)
                _descend(own[u], by_turned if unified else by_own, rates[3][u] * factor)
                vectors[u] -= dtype.type(rates[0][u] * factor) * ascent
                biases[u, 0] -= rates[1][u] * factor * of_rows.sum()
                factor *= decay
        losses[:, u] /= (lengths[u] + batch_size - 1) // batch_size


@compiled
def _of_views(
    vector: Floats,
    bias: float,
    seen: Floats,
    held: Floats,
    batch: tuple[Ints, Floats],
    slopes: Floats,
    slope: Floats,
    ascent: Floats,
) -> float:
    """The mean cross-entropy of a batch on one client's tables as it looks at them. `slopes` and `ascent` receive its
    gradients by the scores and by the vector, `slope` that by the score of every item.
    """
    looked_up, labels = batch
    tables = (seen.reshape((1, *seen.shape)), held.reshape((1, *held.shape)))
    loss = slopes_of(vector, bias, tables, 0, looked_up, labels, slopes)
    ascend(tables, 0, looked_up, slopes, ascent)
    slope[:] = 0.0
    for j in range(len(looked_up)):
        slope[looked_up[j]] += slopes[j]
    return loss


@compiled
def _fill_matrix(matrix: Floats, learned: Floats, generated: Floats, made: bool, alpha: float, residual: bool) -> None:
    if not made:
        matrix[:] = learned
        return
    matrix[:] = (matrix.dtype.type(alpha) * generated).reshape(matrix.shape)
    if residual:
        for c in range(len(matrix)):
            matrix[c, c] += 1.0


@compiled
def _mean_rows(table: Floats, chosen: Ints, mean: Floats) -> None:
    mean[:] = 0.0
    for j in chosen:
        for c in range(len(mean)):
            mean[c] += table[j, c]
    mean /= max(len(chosen), 1)


@compiled
def _add_to_rows(table: Floats, chosen: Ints, gradient: Floats) -> None:
    """The gradient by the mean of some rows, handed to each of them."""
    share = gradient / table.dtype.type(max(len(chosen), 1))
    for j in chosen:
        for c in range(len(share)):
            table[j, c] += share[c]


@compiled
def _add_outer(column: Floats, row: Floats, one: Floats, other: Floats) -> None:
    for j in range(len(column)):
        if column[j] != 0.0:
            for c in range(len(row)):
                one[j, c] += column[j] * row[c]
                other[j, c] += column[j] * row[c]


@compiled
def _descend(table: Floats, gradient: Floats, rate: float) -> None:
    own = table.dtype.type(rate)
    for j in range(table.shape[0]):
        for c in range(table.shape[1]):
            table[j, c] -= own * gradient[j, c]


@compiled
def _generate(net: tuple[Floats, ...], biases: tuple[Floats, ...], u: int, hidden: list[Floats]) -> None:
    """Append what each layer of client u's network gives, after ReLU but for the last."""
    for layer in range(len(net)):
        found = np.dot(net[layer][u], hidden[layer]) + biases[layer][u]
        if layer < len(net) - 1:
            found = np.maximum(found, net[layer].dtype.type(0.0))
        hidden.append(found)


@compiled
def _step_net(
    net: tuple[Floats, ...], biases: tuple[Floats, ...], u: int, hidden: list[Floats], slopes: Floats, rate: float
) -> Floats:
    """Step client u's network, given the gradient by its output; the gradient by its input."""
    own = net[0].dtype.type(rate)
    for back in range(len(net)):
        layer = len(net) - 1 - back
        weight, inputs = net[layer][u], hidden[layer]
        below = np.zeros_like(inputs)
        for a in range(len(slopes)):  # one pass over the weights, which are larger than the tables
            pull = own * slopes[a]
            biases[layer][u, a] -= pull
            for b in range(len(inputs)):
                below[b] += slopes[a] * weight[a, b]
                weight[a, b] -= pull * inputs[b]
        if layer > 0:
            for b in range(len(inputs)):
                if inputs[b] <= 0.0:
                    below[b] = 0.0
        slopes = below
    return slopes


@compiled
def _consist(
    shared: Floats,
    own: Floats,
    favourites: Ints,
    weight: float,
    temperature: float,
    by_shared: Floats,
    by_own: Floats,
) -> float:
    """β_a · L_a; its gradients are added to those given."""
    if weight == 0.0:
        return 0.0
    items, width = own.shape
    sizes, cosines = np.empty((2, items), own.dtype), np.empty((2, items), own.dtype)
    means = np.empty((2, width), own.dtype)
    lengths = np.empty(2)
    lengths[0] = _likeness(shared, favourites, means[0], sizes[0], cosines[0])
    lengths[1] = _likeness(own, favourites, means[1], sizes[1], cosines[1])
    logs = np.empty((2, items))
    for view in range(2):
        highest = cosines[view].max() / temperature
        total = 0.0
        for j in range(items):
            logs[view, j] = cosines[view, j] / temperature - highest
            total += np.exp(logs[view, j])
        logs[view] -= np.log(total)
    crosses = np.zeros(2)
    chances = np.exp(logs)
    for j in range(items):
        crosses[0] += chances[0, j] * logs[1, j]
        crosses[1] += chances[1, j] * logs[0, j]
    scale = 0.5 * weight / temperature
    pulls = np.empty(items, own.dtype)
    for view in range(2):
        other = 1 - view
        for j in range(items):
            change = chances[view, j] * (1.0 - logs[other, j] + crosses[view]) - chances[other, j]
            pulls[j] = scale * change
        if view == 0:
            _pull_by_cosines(shared, favourites, pulls, sizes[0], cosines[0], means[0], lengths[0], by_shared)
        else:
            _pull_by_cosines(own, favourites, pulls, sizes[1], cosines[1], means[1], lengths[1], by_own)
    return float(-0.5 * weight * (crosses[0] + crosses[1]))


@compiled
def _likeness(table: Floats, favourites: Ints, mean: Floats, sizes: Floats, cosines: Floats) -> float:
    """Length of the prototype, which `mean` receives as a unit vector; inverse lengths of all rows, their cosines."""
    _mean_rows(table, favourites, mean)
    length = np.sqrt((mean * mean).sum())
    if length > 0.0:
        mean /= length
    for j in range(len(table)):
        square = product = table.dtype.type(0.0)
        for c in range(len(mean)):
            square += table[j, c] * table[j, c]
            product += table[j, c] * mean[c]
        sizes[j] = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        cosines[j] = product * sizes[j]
    return float(length)


@compiled
def _pull_by_cosines(
    table: Floats,
    favourites: Ints,
    pulls: Floats,
    sizes: Floats,
    cosines: Floats,
    mean: Floats,
    length: float,
    gradient: Floats,
) -> None:
    """Add the gradient by the table, given that by the cosines of its rows with their prototype."""
    width = len(mean)
    by_mean = np.zeros(width, table.dtype)
    along = table.dtype.type(0.0)
    for j in range(len(table)):
        scaled = pulls[j] * sizes[j]
        inward = scaled * cosines[j] * sizes[j]
        along += pulls[j] * cosines[j]
        for c in range(width):
            gradient[j, c] += scaled * mean[c] - inward * table[j, c]
            by_mean[c] += scaled * table[j, c]
    if length > 0.0:
        for c in range(width):
            by_mean[c] = (by_mean[c] - along * mean[c]) / length
        _add_to_rows(gradient, favourites, by_mean)


@compiled
def _uncorrelate(shared: Floats, own: Floats, weight: float, by_shared: Floats, by_own: Floats) -> float:
    """β_o · L_o; `by_shared` and `by_own` receive its gradients."""
    if weight == 0.0:
        by_shared[:] = 0.0
        by_own[:] = 0.0
        return 0.0
    items, width = own.shape
    correlation = np.dot(shared.T, own) / own.dtype.type(items)
    value = (correlation * correlation).sum() / width
    correlation *= own.dtype.type(2.0 * weight / (width * items))
    np.dot(own, correlation.T, by_shared)
    np.dot(shared, correlation, by_own)
    return float(weight * value)
