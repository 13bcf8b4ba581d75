"""PMLAM: users and items as Gaussians, ranked by triplets with learnt margins (Ma et al. 2020; decisions.md "pmlam").

    W²(a, b) = |μ_a − μ_b|² + |σ_a − σ_b|²,   σ = Σ^{1/2} = softplus(ρ),   s_ui = −W²(u, i)
    L_fix = Σ [W²(a, p) − W²(a, n) + m]₊        L_ada = Σ [W²(a, p) − W²(a, n) + f(a, p, n)]₊
    f = softplus(w₂ · tanh(W₁ [(z_a − z_p)² ; (z_a − z_n)²] + b₁) + b₂),   z = μ + σ ⊙ ε,   ε ~ N(0, 1)

over triples (anchor a, near p, far n) of three relations, each with a margin network f of its own: a user, a positive
and a sampled negative; a user, a neighbour and another user; an item, a neighbour and another item. Neighbours are
those whose interaction vectors have a cosine above a threshold. With Θ = (μ, ρ) and Φ = the networks a step is

    Θ' = Θ − α ∇_Θ L_ada(Θ, Φ),   Φ ← Adam(∇_Φ L_fix(Θ')),   Θ ← Adam(∇_Θ (L_ada(Θ, Φ) + λ Σ (|μ|² + |σ|²)))

of the sums over all three relations, then every row of all users and items is clipped: μ is shortened to length 1 if it
is longer, and so is the diagonal of the covariance, σ², by scaling σ. Minimising L_ada by both would shrink all margins
to 0.

Φ's gradient needs no second-order graph. With v = ∇L_fix(Θ') it is −α ∇_Φ ⟨v, ∇_Θ L_ada(Θ, Φ)⟩, the bracket is the
derivative of L_ada along v, and of that only the active triples' f depends on Φ. Only rows that the step's triples
touch take part, and inactive triples are left out. One Adam serves Θ and Φ: it keeps moments and counts steps by
parameter, and passes over those without a gradient, so that it is the same as one for each.

Reconstructed: the input of f and its tanh. Not told by the paper, and our decision: ρ keeps Σ
positive; it starts near 0, which clipping turns into σ = d^{-1/4} before the first step. A network's hidden layer has d
units; weights start as those of torch's linear layers, b₂ at 0. Losses are sums over a step's triples, as the paper
writes them, so that the inner step does not shrink as the batch grows. ε is drawn once for a row and step, and serves
all its triples and both gradients. λ acts on the rows a step touches, each once, and not on Φ. A batch counts triples.
A pair of neighbours has one third element in an epoch, and the pairs are spread over the steps.

α = 10 is our decision too. The smaller α, the more Φ is rewarded for nothing but a steep f, because all that speaks
against it is an inner step that goes too far: with α = 0.001 margins explode (means from 8 to 21 on Amazon Game). On
validation items of amazon-game-video, each domain alone (`warm`, d = 50, 20 epochs, seed 0), α = 1 has HR@10 / NDCG@10
of 32.4 / 18.9 and 45.2 / 29.1, α = 10 has 34.1 / 20.3 and 48.2 / 31.1.

Who has nothing to train on, a cold user, is scored with the mean of all others' points [μ ; σ], the barycentre of their
Gaussians.

Deviations: an epoch takes at most as many pairs of users, and of items, as there are training interactions, so that
dense data, where everybody is nearly everybody's neighbour, costs a fifth more and not many times more; where there are
more, that many are drawn anew each epoch. The third element is neither the anchor nor a neighbour of it. Who has no
neighbours, or nobody but neighbours, is left out. Negatives come from outside `TrainingData.excluded`, so the protocol
decides whether they avoid the held-out items. The loss reported is the mean of L_fix over all triples: L_ada moves with
the margins, and is no measure of progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.compiled import compiled
from confed.config import MethodConfig
from confed.data.negatives import draw_negatives
from confed.data.split import TrainingData
from confed.errors import ConfedError
from confed.initial import initial, normal, started, uniform, zeros
from confed.models.base import EpochModel, interaction_matrix
from confed.ragged import Ragged
from confed.random import Stream, keyed
from confed.scoring import Scorer

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]

RELATIONS = ("user_item", "user_user", "item_item")

_BLOCK_PRODUCTS = 1 << 21
"""Multiplications at once when neighbours are looked for: at most some 100 MB."""
_MOST_PAIRS = 1 << 27
"""Pairs of neighbours that are kept, both ways counted: 1 GiB."""


class PMLAMConfig(MethodConfig):
    dim: int = Field(default=50, ge=1)
    """d, width of means, of deviations and of the margin networks' hidden layers."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size, for Gaussians and margin networks."""
    inner_learning_rate: float = Field(default=10.0, gt=0)
    """α, of the plain gradient step by whose outcome the margins are judged."""
    fixed_margin: float = Field(default=1.0, gt=0)
    """m, with which that outcome is judged."""
    regularisation: float = Field(default=0.001, ge=0)
    """λ, on the means and deviations that a step touches."""
    batch_size: int = Field(default=5000, ge=1)
    """Triples of user, positive and negative per step; triples of neighbours come on top."""
    train_negatives: int = Field(default=10, ge=1)
    """Sampled negatives per positive, redrawn every epoch."""
    neighbour_threshold: float = Field(default=0.2, ge=0, le=1)
    """Users (or items) are neighbours if their cosine exceeds this; with 1 nobody has neighbours."""
    neighbour_negatives: int = Field(default=1, ge=1)
    """Random third elements per pair of neighbours, redrawn every epoch."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial means and ρ."""


def neighbours(matrix: scipy.sparse.csr_matrix, threshold: float) -> Ragged:
    """For each row of a 0/1 matrix the other rows whose cosine with it exceeds `threshold`, ascending.

    Compared are (ones in common) and threshold · √(ones · ones), so that a cosine of 1/5 does not exceed 0.2: in sparse
    data very many pairs are just there.
    """
    ones = matrix.getnnz(axis=1).astype(np.float64)
    columns = matrix.T.tocsr()
    rows, others = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for start, stop in _blocks(matrix):
        common = (matrix[start:stop] @ columns).sorted_indices().tocoo()
        row, other = common.row.astype(np.int64) + start, common.col.astype(np.int64)
        close = (common.data > threshold * np.sqrt(ones[row] * ones[other])) & (row != other)
        rows.append(row[close])
        others.append(other[close])
        if sum(map(len, rows)) > _MOST_PAIRS:
            raise ConfedError(f"more than {_MOST_PAIRS:,} pairs of neighbours: raise `neighbour_threshold`")
    return Ragged.group(np.concatenate(rows), np.concatenate(others), matrix.shape[0])


def _blocks(matrix: scipy.sparse.csr_matrix) -> Iterator[tuple[int, int]]:
    """Consecutive rows, whose products with all rows take `_BLOCK_PRODUCTS` multiplications and those of one row."""
    work = np.cumsum(matrix @ matrix.getnnz(axis=0).astype(np.float64))
    starts = np.unique(work // _BLOCK_PRODUCTS, return_index=True)[1].tolist()
    return zip(starts, [*starts[1:], matrix.shape[0]], strict=True)


class Pairs:
    """Neighbours among the users, or among the items; `first` is the node number of the first of them."""

    def __init__(self, near: Ragged, first: int) -> None:
        rows, own = near.row_of, np.arange(len(near))
        grouped = Ragged.group(np.concatenate([rows, own]), np.concatenate([near.values, own]), len(near))
        self.near_or_own = grouped.unique()
        self.pool = len(near) - self.near_or_own.lengths
        usable = self.pool[rows] > 0
        self.anchors, self.near = rows[usable], near.values[usable]
        self.first = first

    def triples(self, most: int, negatives: int, stream: Stream) -> Tensor:
        """(3, n): the nodes of all pairs in random order, or of `most` drawn ones, and of somebody else."""
        if len(self.near) > most:
            pair = stream.child("pairs").integers(np.arange(most), 0, len(self.near))
        else:
            pair = stream.child("order").order(len(self.near))
        pair = np.repeat(pair, negatives)
        anchors = self.anchors[pair]
        rank = stream.child("thirds").integers(np.arange(len(pair)), 0, self.pool[anchors])
        far = self.near_or_own.outside(anchors, rank)
        return torch.from_numpy(np.stack([anchors, self.near[pair], far]) + self.first)


@dataclass(frozen=True)
class MarginNetwork:
    """f = softplus(logit),  logit = outer · tanh(weight · input + bias) + offset."""

    weight: Tensor
    bias: Tensor
    outer: Tensor
    offset: Tensor

    @property
    def parts(self) -> tuple[Tensor, ...]:
        return self.weight, self.bias, self.outer, self.offset

    def __call__(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden layer (n, d) and the logits (n,)."""
        hidden = torch.tanh(functional.linear(inputs, self.weight, self.bias))
        return hidden, hidden @ self.outer + self.offset

    def slopes(self, hidden: Tensor, logits: Tensor) -> Tensor:
        """(n, 2d): the gradient of each f by its input."""
        by_hidden = torch.sigmoid(logits)[:, None] * self.outer
        return (by_hidden * (1.0 - hidden.square())) @ self.weight

    def rise(self, inputs: Tensor, direction: Tensor) -> Tensor:
        """The derivative of Σ f when the inputs move in `direction`."""
        hidden, logits = self(inputs)
        moved = functional.linear(direction, self.weight) * (1.0 - hidden.square())
        return torch.sigmoid(logits) @ (moved @ self.outer)


def _fresh_network(relation: str, dim: int, seed: int) -> dict[str, Tensor]:
    inputs = uniform((2 * dim) ** -0.5)
    layers = {
        "weight": ((dim, 2 * dim), inputs),
        "bias": ((dim,), inputs),
        "outer": ((dim,), uniform(dim**-0.5)),
        "offset": ((1,), zeros),
    }
    return started(seed, {f"{relation}.{part}": layer for part, layer in layers.items()})


class Batch:
    """The triples of a step, by relation, and the Gaussians they touch as the step finds them.

    Triples (3, n) are numbers of touched rows. A `point` (2, d) is a mean and a deviation: W² is the squared distance
    of two points. Gradients by Θ have the shape of `theta` (rows, 2, d).
    """

    def __init__(self, table: Tensor, triples: Mapping[str, Tensor], generator: torch.Generator) -> None:
        nodes = {relation: rows.reshape(-1) for relation, rows in triples.items() if rows.numel()}
        self.touched, places = torch.unique(torch.cat(list(nodes.values())), return_inverse=True)
        parts = places.split([len(part) for part in nodes.values()])
        self.triples = {relation: part.view(3, -1) for relation, part in zip(nodes, parts, strict=True)}
        self.theta = table.index_select(0, self.touched)
        self.growth = torch.sigmoid(self.theta[:, 1])  # of the deviation with ρ
        self.points = points_of(self.theta)
        self.noise = torch.randn(self.growth.shape, generator=generator, dtype=table.dtype)
        self.samples = self.points[:, 0] + self.points[:, 1] * self.noise
        self.gaps = {relation: gaps(self.points, rows) for relation, rows in self.triples.items()}
        self.inputs = {relation: squares(self.samples, rows) for relation, rows in self.triples.items()}

    @property
    def size(self) -> int:
        return sum(rows.shape[1] for rows in self.triples.values())

    def fixed_loss(self, margin: float) -> float:
        """L_fix(Θ)."""
        return sum(float(torch.relu(gap + margin).sum()) for gap in self.gaps.values())

    def fixed_gradient(self, theta: Tensor, margin: float) -> Tensor:
        """∇L_fix at another Θ."""
        points = points_of(theta)
        gradient = torch.zeros_like(points)
        for rows in self.triples.values():
            pull_points(points, rows[:, gaps(points, rows) + margin > 0], gradient)
        gradient[:, 1] *= torch.sigmoid(theta[:, 1])
        return gradient

    def adaptive_gradient(self, networks: Mapping[str, MarginNetwork]) -> tuple[Tensor, dict[str, Tensor]]:
        """∇_Θ L_ada(Θ, Φ); and, by relation, the numbers of the triples that have a part in it."""
        gradient, by_samples = torch.zeros_like(self.points), torch.zeros_like(self.samples)
        active = {}
        for relation, rows in self.triples.items():
            network = networks[relation]
            hidden, logits = network(self.inputs[relation])
            chosen = torch.nonzero(self.gaps[relation] + functional.softplus(logits) > 0)[:, 0]
            slopes = network.slopes(hidden.index_select(0, chosen), logits[chosen])
            pull_points(self.points, rows[:, chosen], gradient)
            pull_samples(self.samples, rows[:, chosen], slopes, by_samples)
            active[relation] = chosen
        gradient[:, 0] += by_samples
        gradient[:, 1] += by_samples * self.noise
        gradient[:, 1] *= self.growth
        return gradient, active

    def decay_gradient(self) -> Tensor:
        """∇_Θ Σ (|μ|² + |σ|²)."""
        gradient = 2.0 * self.points
        gradient[:, 1] *= self.growth
        return gradient

    def samples_along(self, direction: Tensor) -> Tensor:
        """How the samples move when Θ moves in `direction`."""
        return direction[:, 0] + direction[:, 1] * self.growth * self.noise


def points_of(theta: Tensor) -> Tensor:
    return torch.stack([theta[:, 0], functional.softplus(theta[:, 1])], dim=1)


def clip(table: Tensor) -> None:
    """Shorten the means and the diagonals of the covariances (nodes, 2, d), where they are longer than 1."""
    means, rho = table.unbind(dim=1)
    means /= torch.linalg.vector_norm(means, dim=1, keepdim=True).clamp_min(1.0)
    deviation = functional.softplus(rho)
    length = torch.linalg.vector_norm(deviation.square(), dim=1, keepdim=True)
    longer = torch.nonzero(length[:, 0] > 1.0)[:, 0]
    shrunk = deviation[longer] / length[longer].sqrt()
    shrunk.clamp_min_(torch.finfo(table.dtype).tiny)  # ρ of 0 would be −∞
    rho[longer] = shrunk + torch.log(-torch.expm1(-shrunk))  # the inverse of softplus


def gaps(points: Tensor, triples: Tensor) -> Tensor:
    """(n,): W²(anchor, near) − W²(anchor, far)."""
    found = points.new_empty(triples.shape[1])
    _gaps(points.flatten(1).numpy(), triples.numpy(), found.numpy())
    return found


@compiled
def _gaps(points: Floats, triples: Ints, found: Floats) -> None:
    for j in range(triples.shape[1]):
        anchor, near, far = points[triples[0, j]], points[triples[1, j]], points[triples[2, j]]
        total = points.dtype.type(0)
        for c in range(points.shape[1]):
            total += (anchor[c] - near[c]) ** 2 - (anchor[c] - far[c]) ** 2
        found[j] = total


def pull_points(points: Tensor, triples: Tensor, gradient: Tensor) -> None:
    """Add to `gradient` that of the sum of `gaps`."""
    _pull_points(points.flatten(1).numpy(), triples.numpy(), gradient.flatten(1).numpy())


@compiled
def _pull_points(points: Floats, triples: Ints, gradient: Floats) -> None:
    two = points.dtype.type(2)  # a plain 2 would make single precision double
    for j in range(triples.shape[1]):
        a, p, n = triples[0, j], triples[1, j], triples[2, j]
        for c in range(points.shape[1]):
            gradient[a, c] += two * (points[n, c] - points[p, c])
            gradient[p, c] += two * (points[p, c] - points[a, c])
            gradient[n, c] += two * (points[a, c] - points[n, c])


def squares(samples: Tensor, triples: Tensor) -> Tensor:
    """(n, 2d): the squared differences of anchor and near, then of anchor and far, coordinate by coordinate."""
    found = samples.new_empty(triples.shape[1], 2 * samples.shape[1])
    _products(samples.numpy(), samples.numpy(), triples.numpy(), found.numpy())
    return found


def squares_along(samples: Tensor, direction: Tensor, triples: Tensor) -> Tensor:
    """(n, 2d): the derivative of `squares` when the samples move in `direction`."""
    found = samples.new_empty(triples.shape[1], 2 * samples.shape[1])
    _products(samples.numpy(), (2.0 * direction).numpy(), triples.numpy(), found.numpy())
    return found


@compiled
def _products(left: Floats, right: Floats, triples: Ints, found: Floats) -> None:
    """Of the differences of anchor and near, and of anchor and far, in two tables."""
    width = left.shape[1]
    for j in range(triples.shape[1]):
        a, p, n = triples[0, j], triples[1, j], triples[2, j]
        for c in range(width):
            found[j, c] = (left[a, c] - left[p, c]) * (right[a, c] - right[p, c])
            found[j, width + c] = (left[a, c] - left[n, c]) * (right[a, c] - right[n, c])


def pull_samples(samples: Tensor, triples: Tensor, slopes: Tensor, gradient: Tensor) -> None:
    """Add to `gradient` that of Σ slopes · `squares`."""
    _pull_samples(samples.numpy(), triples.numpy(), slopes.numpy(), gradient.numpy())


@compiled
def _pull_samples(samples: Floats, triples: Ints, slopes: Floats, gradient: Floats) -> None:
    width, two = samples.shape[1], samples.dtype.type(2)
    for j in range(triples.shape[1]):
        a, p, n = triples[0, j], triples[1, j], triples[2, j]
        for c in range(width):
            near = two * slopes[j, c] * (samples[a, c] - samples[p, c])
            far = two * slopes[j, width + c] * (samples[a, c] - samples[n, c])
            gradient[a, c] += near + far
            gradient[p, c] -= near
            gradient[n, c] -= far


class PMLAMModel(EpochModel):
    """The Gaussians of all nodes, users and then items, in one table (nodes, 2, d) of μ and ρ; three networks."""

    def __init__(self, config: PMLAMConfig, data: TrainingData, seed: int, dtype: str) -> None:
        shape = (data.users + data.items, 2, config.dim)
        params = {"gaussians": initial(seed, "gaussians", shape, normal(config.init_deviation))}
        for relation in RELATIONS:
            params |= _fresh_network(relation, config.dim, seed)
        super().__init__(data, seed, dtype, params, config.learning_rate)
        self.config = config
        clip(self.params["gaussians"])
        self.networks = {relation: self._network(relation) for relation in RELATIONS}
        matrix = interaction_matrix(data, torch.float32)
        self.pairs = {
            "user_user": Pairs(neighbours(matrix, config.neighbour_threshold), 0),
            "item_item": Pairs(neighbours(matrix.T.tocsr(), config.neighbour_threshold), data.users),
        }

    def _network(self, relation: str) -> MarginNetwork:
        parts = (self.params[f"{relation}.{part.name}"] for part in fields(MarginNetwork))
        return MarginNetwork(*(part.requires_grad_() for part in parts))

    def epoch(self, number: int) -> float:
        triples = self.triples(number)
        steps = -(-triples["user_item"].shape[1] // self.config.batch_size)
        parts = [rows.tensor_split(steps, dim=1) for rows in triples.values()]
        loss = 0.0
        for step, chosen in enumerate(zip(*parts, strict=True)):
            generator = keyed(self.seed, "noise", number, step)
            loss += self.step(Batch(self.params["gaussians"], dict(zip(triples, chosen, strict=True)), generator))
        return loss / sum(rows.shape[1] for rows in triples.values())

    def triples(self, number: int) -> dict[str, Tensor]:
        """(3, n) node numbers by relation, in random order."""
        found = {"user_item": self._user_item_triples(number)}
        most, negatives = len(self.data.positives.values), self.config.neighbour_negatives
        for relation, pairs in self.pairs.items():
            found[relation] = pairs.triples(most, negatives, Stream.of(self.seed, relation, number))
        return found

    def _user_item_triples(self, number: int) -> Tensor:
        everyone, count = np.arange(self.data.users), self.config.train_negatives
        drawn = draw_negatives(self.data, everyone, count, Stream.of(self.seed, "negatives", number))
        order = Stream.of(self.seed, "shuffle", number).order(drawn.size)
        users, positives = self.data.positives.row_of[order // count], self.data.positives.values[order // count]
        far = drawn.reshape(-1)[order]
        return torch.from_numpy(np.stack([users, positives + self.data.users, far + self.data.users]))

    @torch.no_grad()
    def step(self, batch: Batch) -> float:
        """One step of the networks, then one of the Gaussians; L_fix before them."""
        loss = batch.fixed_loss(self.config.fixed_margin)
        for relation, gradients in self.margin_gradients(batch).items():
            for part, gradient in zip(self.networks[relation].parts, gradients, strict=True):
                part.grad = gradient
        self._step_those_with_gradient()
        table = self.params["gaussians"]
        gradient, _ = batch.adaptive_gradient(self.networks)
        gradient += self.config.regularisation * batch.decay_gradient()
        table.grad = torch.zeros_like(table).index_copy_(0, batch.touched, gradient)
        self._step_those_with_gradient()
        clip(table)
        return loss

    def _step_those_with_gradient(self) -> None:
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def margin_gradients(self, batch: Batch) -> dict[str, tuple[Tensor, ...]]:
        """∇_Φ L_fix(Θ − α ∇_Θ L_ada(Θ, Φ)), by relation."""
        rate = self.config.inner_learning_rate
        inner, active = batch.adaptive_gradient(self.networks)
        outer = batch.fixed_gradient(batch.theta - rate * inner, self.config.fixed_margin)
        direction = batch.samples_along(outer)
        found = {}
        for relation, chosen in active.items():
            network = self.networks[relation]
            inputs = batch.inputs[relation].index_select(0, chosen)
            moved = squares_along(batch.samples, direction, batch.triples[relation][:, chosen])
            with torch.enable_grad():
                found[relation] = torch.autograd.grad(-rate * network.rise(inputs, moved), network.parts)
        return found

    def scorer(self) -> Scorer:
        """−W² = 2 x_u · x_i − |x_u|² − |x_i|², with points as vectors x."""
        points = points_of(self.params["gaussians"]).flatten(1)
        users, items = self.for_scoring(points[: self.data.users]), points[self.data.users :]
        columns, squared = items.T, items.square().sum(dim=1)

        def score(clients: Tensor) -> Tensor:
            rows = users.index_select(0, clients)
            return torch.addmm(squared, rows, columns, beta=-1, alpha=2) - rows.square().sum(dim=1, keepdim=True)

        return score
