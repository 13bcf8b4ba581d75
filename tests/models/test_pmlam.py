import numpy as np
import pytest
import scipy.sparse
import torch
from torch.nn import functional

from confed.data.split import TrainingData, split
from confed.data.synthetic import synthetic
from confed.errors import ConfedError
from confed.evaluation.evaluator import Evaluator
from confed.methods.pmlam import PMLAM
from confed.methods.popularity import Popularity
from confed.models import pmlam
from confed.models.base import interaction_matrix
from confed.models.pmlam import RELATIONS, Batch, Pairs, neighbours
from confed.ragged import Ragged
from confed.random import Stream, fingerprint
from confed.testing import assert_equal_states, tiny
from tests.models.scores import scores_of

OPTIONS = {"dim": 3, "batch_size": 500, "learning_rate": 0.02, "train_negatives": 3, "regularisation": 0.01}
PARTS = ("weight", "bias", "outer", "offset")


def fresh(data=None, seed=3, **options):
    method = PMLAM()
    config = method.config("tiny", {**OPTIONS, **options})
    return method.model(config, data or tiny.cut().training, seed, "float64")


def data_of(*rows, items=12):
    positives = Ragged.of(rows)
    return TrainingData(items, positives, positives.unique())


def spread_out(ours):
    """Gaussians and networks as after some training: triples on both sides of the hinge, margins of all sizes."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        ours.params["gaussians"].copy_(
            torch.randn(ours.params["gaussians"].shape, generator=generator, dtype=torch.float64)
        )
        pmlam.clip(ours.params["gaussians"])
        for network in ours.networks.values():
            for part in network.parts:
                part.mul_(3.0)
    return ours


def noise_of(seed, epoch, step):
    return torch.Generator().manual_seed(fingerprint(seed, "noise", epoch, step) >> 1)


def first_batch(ours, size=120):
    triples = {relation: rows[:, :size] for relation, rows in ours.triples(1).items()}
    return Batch(ours.params["gaussians"], triples, noise_of(3, 1, 0))


class Plain:
    """The formulas as they are written, for autograd: one triple's parts at a time, on whole rows."""

    def __init__(self, triples, noise):
        self.triples, self.noise = triples, noise

    def gap(self, theta, relation):
        mean, deviation = theta[:, 0], torch.log1p(torch.exp(theta[:, 1]))
        a, p, n = self.triples[relation]

        def distance(one, other):
            return ((mean[one] - mean[other]) ** 2).sum(1) + ((deviation[one] - deviation[other]) ** 2).sum(1)

        return distance(a, p) - distance(a, n)

    def margin(self, theta, relation, network):
        weight, bias, outer, offset = network
        sample = theta[:, 0] + torch.log1p(torch.exp(theta[:, 1])) * self.noise
        a, p, n = self.triples[relation]
        inputs = torch.cat([(sample[a] - sample[p]) ** 2, (sample[a] - sample[n]) ** 2], dim=1)
        return torch.log1p(torch.exp(torch.tanh(inputs @ weight.T + bias) @ outer + offset))

    def fixed(self, theta, margin=1.0):
        return sum((self.gap(theta, relation) + margin).clamp(min=0).sum() for relation in self.triples)

    def adaptive(self, theta, networks):
        return sum(
            (self.gap(theta, relation) + self.margin(theta, relation, networks[relation])).clamp(min=0).sum()
            for relation in self.triples
        )

    def ahead(self, theta, networks, rate, create_graph=False):
        """Θ'."""
        theta = theta.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(self.adaptive(theta, networks), theta, create_graph=create_graph)
        return theta - rate * gradient


def plain_of(batch):
    return Plain(batch.triples, batch.noise)


def networks_of(ours):
    return {relation: tuple(part.detach() for part in network.parts) for relation, network in ours.networks.items()}


def test_scores_are_minus_the_distance_of_every_pair():
    ours = spread_out(fresh())
    ours.train(1)
    scores = scores_of(ours)
    mean, rho = ours.params["gaussians"].unbind(dim=1)
    for user, item in [(0, 0), (3, 59), (23, 17)]:
        expected = 0.0
        for c in range(3):
            one, other = float(rho[user, c]), float(rho[tiny.USERS + item, c])
            expected += (float(mean[user, c]) - float(mean[tiny.USERS + item, c])) ** 2
            expected += (np.log1p(np.exp(one)) - np.log1p(np.exp(other))) ** 2
        assert float(scores[user, item]) == pytest.approx(-expected, rel=1e-10)
    points = torch.cat([mean, functional.softplus(rho)], dim=1)
    brute = -torch.cdist(points[: tiny.USERS], points[tiny.USERS :]).square()
    torch.testing.assert_close(scores, brute)
    assert not ours.scorer()(torch.arange(2)).requires_grad


def test_the_gaussians_gradient_equals_autograd():
    ours = spread_out(fresh())
    batch, networks = first_batch(ours), networks_of(ours)
    assert set(batch.triples) == set(RELATIONS)
    theta = batch.theta.clone().requires_grad_()
    loss = plain_of(batch).adaptive(theta, networks)
    (expected,) = torch.autograd.grad(loss, theta)
    with torch.no_grad():
        gradient, active = batch.adaptive_gradient(ours.networks)
    torch.testing.assert_close(gradient, expected)
    shares = [len(chosen) / batch.triples[relation].shape[1] for relation, chosen in active.items()]
    assert all(0.0 < share < 1.0 for share in shares)
    (expected,) = torch.autograd.grad(plain_of(batch).fixed(theta), theta)
    torch.testing.assert_close(batch.fixed_gradient(batch.theta, 1.0), expected)
    assert batch.fixed_loss(1.0) == pytest.approx(float(plain_of(batch).fixed(theta.detach())))
    penalty = theta[:, 0].square().sum() + functional.softplus(theta[:, 1]).square().sum()
    torch.testing.assert_close(batch.decay_gradient(), torch.autograd.grad(penalty, theta)[0])


@pytest.mark.parametrize("rate", [0.001, 0.3])
def test_the_margins_gradient_equals_finite_differences_through_the_inner_step(rate):
    ours = spread_out(fresh(inner_learning_rate=rate))
    batch, networks = first_batch(ours, size=25), networks_of(ours)
    plain, tiny_step = plain_of(batch), 1e-6
    with torch.no_grad():
        found = ours.margin_gradients(batch)
    for relation, gradients in found.items():
        for part, gradient in zip(networks[relation], gradients, strict=True):
            expected = torch.empty_like(part).view(-1)
            for k in range(part.numel()):
                outcome = []
                for sign in (1.0, -1.0):
                    part.view(-1)[k] += sign * tiny_step
                    outcome.append(float(plain.fixed(plain.ahead(batch.theta, networks, rate).detach())))
                    part.view(-1)[k] -= sign * tiny_step
                expected[k] = (outcome[0] - outcome[1]) / (2 * tiny_step)
            torch.testing.assert_close(gradient.view(-1), expected, rtol=1e-4, atol=1e-6 * float(gradient.abs().max()))
            assert float(gradient.abs().max()) > 0.0


def test_an_epoch_equals_autograd_with_two_adams():
    """Second-order gradients on all rows, an Adam for the Gaussians, an Adam for the networks, clipping by hand."""
    ours = spread_out(fresh(inner_learning_rate=0.2))
    table = ours.params["gaussians"].clone().requires_grad_()
    networks = {
        relation: tuple(part.clone().requires_grad_() for part in parts)
        for relation, parts in networks_of(ours).items()
    }
    flat = [part for parts in networks.values() for part in parts]
    margins = torch.optim.Adam(flat, lr=0.02, foreach=False)
    gaussians = torch.optim.Adam([table], lr=0.02, foreach=False)
    triples = ours.triples(1)
    steps = -(-triples["user_item"].shape[1] // 500)
    assert steps > 1
    total = 0.0
    for step, chosen in enumerate(zip(*(rows.tensor_split(steps, dim=1) for rows in triples.values()), strict=True)):
        touched = torch.cat([rows.reshape(-1) for rows in chosen]).unique()
        noise = torch.zeros(len(table), 3, dtype=torch.float64)
        noise[touched] = torch.randn(len(touched), 3, generator=noise_of(3, 1, step), dtype=torch.float64)
        plain = Plain(dict(zip(triples, chosen, strict=True)), noise)
        total += float(plain.fixed(table.detach()))
        margins.zero_grad()
        plain.fixed(plain.ahead(table, networks, 0.2, create_graph=True)).backward(inputs=flat)
        margins.step()
        gaussians.zero_grad()
        penalty = table[touched, 0].square().sum() + functional.softplus(table[touched, 1]).square().sum()
        (plain.adaptive(table, networks) + 0.01 * penalty).backward(inputs=[table])
        gaussians.step()
        with torch.no_grad():
            for row in table:
                row[0] /= max(1.0, float(row[0].norm()))
                covariance = functional.softplus(row[1]) ** 2
                deviation = (covariance / max(1.0, float(covariance.norm()))) ** 0.5
                row[1] = torch.log(torch.exp(deviation) - 1.0)
    loss = ours.train(1)
    assert loss == pytest.approx(total / sum(rows.shape[1] for rows in triples.values()), rel=1e-9)
    torch.testing.assert_close(ours.params["gaussians"], table.detach(), rtol=1e-7, atol=1e-7)
    for relation, parts in networks.items():
        for name, part in zip(PARTS, parts, strict=True):
            torch.testing.assert_close(ours.params[f"{relation}.{name}"], part, rtol=1e-7, atol=1e-7)


def test_a_margin_by_hand():
    network = pmlam.MarginNetwork(
        torch.tensor([[1.0, -1.0]]), torch.tensor([0.5]), torch.tensor([2.0]), torch.tensor([-1.0])
    )
    samples, triples = torch.tensor([[1.0], [3.0], [2.0]]), torch.tensor([[0], [1], [2]])
    inputs = pmlam.squares(samples, triples)
    assert inputs.tolist() == [[4.0, 1.0]]
    _, logits = network(inputs)
    assert float(logits) == pytest.approx(2.0 * np.tanh(3.5) - 1.0)


def test_clipping_by_hand():
    """σ² = (0.8, 0.6) · 4 is shortened to (0.8, 0.6), a mean of length 5 to its direction; short ones stay."""
    long, short = torch.tensor([3.2, 2.4]).double().sqrt(), torch.tensor([0.5, 0.1]).double()
    table = torch.stack(
        [
            torch.stack([torch.tensor([3.0, 4.0]).double(), torch.log(torch.expm1(long))]),
            torch.stack([torch.tensor([0.3, -0.4]).double(), torch.log(torch.expm1(short))]),
        ]
    )
    before = table.clone()
    pmlam.clip(table)
    torch.testing.assert_close(table[0, 0], torch.tensor([0.6, 0.8]).double())
    torch.testing.assert_close(functional.softplus(table[0, 1]).square(), torch.tensor([0.8, 0.6]).double())
    assert torch.equal(table[1], before[1])


def test_clipping_leaves_no_infinite_value():
    table = torch.tensor([[[0.0, 0.0], [900.0, -900.0]]])
    pmlam.clip(table)
    assert bool(torch.isfinite(table).all())


@pytest.mark.parametrize("learning_rate", [0.02, 5.0])
def test_means_and_covariances_are_never_longer_than_one(learning_rate):
    ours = fresh(learning_rate=learning_rate)
    for number in range(4):
        mean, rho = ours.params["gaussians"].unbind(dim=1)
        assert float(mean.norm(dim=1).max()) <= 1.0 + 1e-12
        assert float(functional.softplus(rho).square().norm(dim=1).max()) <= 1.0 + 1e-9
        ours.train(number + 1)


def dense_neighbours(matrix, threshold):
    dense = matrix.toarray().astype(np.float64)
    norms = np.sqrt(dense.sum(axis=1, keepdims=True))
    with np.errstate(invalid="ignore"):
        cosine = np.nan_to_num(dense @ dense.T / (norms * norms.T))
    np.fill_diagonal(cosine, 0.0)
    return [np.flatnonzero(row > threshold + 1e-12).tolist() for row in cosine]


@pytest.mark.parametrize("products", [1, 300, 1 << 21])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5])
def test_neighbours_are_those_of_the_dense_cosines(monkeypatch, products, threshold):
    monkeypatch.setattr(pmlam, "_BLOCK_PRODUCTS", products)
    matrix = interaction_matrix(tiny.cut().training, torch.float32)
    for side in (matrix, matrix.T.tocsr()):
        found = neighbours(side, threshold)
        expected = dense_neighbours(side, threshold)
        assert [row.tolist() for row in (found[k] for k in range(len(found)))] == expected
        assert any(expected)


@pytest.mark.parametrize("common", [1, 2])
def test_a_cosine_of_just_the_threshold_does_not_exceed_it(common):
    """Five items each, one in common: 1/5. In double precision (1/√5)² is more than 0.2."""
    positives = [[0, 1, 2, 3, 4], [*range(common), *range(5, 10 - common)]]
    matrix = interaction_matrix(data_of(*positives), torch.float32)
    assert len(neighbours(matrix, 0.2).values) == (0 if common == 1 else 2)


def test_rows_without_ones_have_no_neighbours():
    matrix = scipy.sparse.csr_matrix(np.array([[0, 0], [1, 0], [1, 0], [0, 0]], dtype=np.float32))
    assert neighbours(matrix, 0.0).lengths.tolist() == [0, 1, 1, 0]


def test_too_many_neighbours_are_an_error(monkeypatch):
    monkeypatch.setattr(pmlam, "_MOST_PAIRS", 5)
    with pytest.raises(ConfedError, match="neighbour_threshold"):
        fresh()


def test_pairs_take_every_pair_once_and_a_third_that_is_no_neighbour():
    near = Ragged.of([[1, 2], [0], [0], []])
    pairs = Pairs(near, first=10)
    for number in range(20):
        anchors, close, far = (pairs.triples(100, 1, Stream.of(0, "x", number)) - 10).tolist()
        assert sorted(zip(anchors, close, strict=True)) == [(0, 1), (0, 2), (1, 0), (2, 0)]
        for anchor, other in zip(anchors, far, strict=True):
            assert other in {0: {3}, 1: {2, 3}, 2: {1, 3}}[anchor]


def test_pairs_are_drawn_where_there_are_too_many():
    pairs = Pairs(Ragged.of([[1], [0], [3], [2], []]), first=0)
    drawn = [pairs.triples(3, 2, Stream.of(0, "x", number)) for number in range(60)]
    assert all(rows.shape == (3, 6) for rows in drawn)
    anchors, near, _ = torch.cat(drawn, dim=1)
    assert set(zip(anchors.tolist(), near.tolist(), strict=True)) == {(0, 1), (1, 0), (2, 3), (3, 2)}


def test_identical_users_have_no_third_and_are_left_out():
    ours = fresh(data_of([0, 1, 2], [0, 1, 2], [0, 1, 2]), learning_rate=0.05)
    assert ours.triples(1)["user_user"].shape == (3, 0)
    start = {name: ours.params[f"{name}.weight"].detach().clone() for name in RELATIONS}
    for number in range(1, 31):
        ours.train(number)
    unchanged = {name for name in RELATIONS if torch.equal(ours.params[f"{name}.weight"], start[name])}
    assert unchanged == {"user_user"}
    scores = ours.scorer()(torch.arange(3))
    assert bool((scores[:, :3].amin(dim=1) > scores[:, 3:].amax(dim=1)).all())


def test_a_user_without_neighbours_learns_from_its_items():
    """User 2 shares nothing with anybody; users 0 and 1 are neighbours, and 2 is their only third."""
    ours = fresh(data_of([0, 1, 2], [0, 1, 3], [8, 9]), learning_rate=0.05)
    assert sorted(ours.triples(1)["user_user"].T.tolist()) == [[0, 1, 2], [1, 0, 2]]
    for number in range(1, 31):
        ours.train(number)
    scores = ours.scorer()(torch.tensor([2]))[0]
    assert set(scores.argsort(descending=True)[:2].tolist()) == {8, 9}


def test_user_item_triples_have_every_positive_and_q_distinct_negatives():
    positives = Ragged.of([[0, 1], [2]])
    data = TrainingData(8, positives, Ragged.of([[0, 1, 2], [2, 3]]))
    ours = fresh(data, train_negatives=4)
    users, near, far = ours.triples(1)["user_item"]
    rows = list(zip(users.tolist(), (near - 2).tolist(), (far - 2).tolist(), strict=True))
    assert len(rows) == len(set(rows)) == 12
    for user, item in [(0, 0), (0, 1), (1, 2)]:
        negatives = {n for u, p, n in rows if (u, p) == (user, item)}
        assert len(negatives) == 4
        assert not negatives & set(data.excluded[user].tolist())
    again, other = ours.triples(1)["user_item"], ours.triples(2)["user_item"]
    assert torch.equal(torch.stack([users, near, far]), again)
    assert not torch.equal(again, other)


def test_a_state_keeps_both_adams():
    ours = fresh()
    ours.train(1)
    names = {"gaussians"} | {f"{relation}.{part}" for relation in RELATIONS for part in PARTS}
    state = {name: value.clone() for name, value in ours.state().items()}
    assert set(state) == {
        f"{kind}.{n}" for kind in ("param", "adam.step", "adam.exp_avg", "adam.exp_avg_sq") for n in names
    }
    steps = {float(state[f"adam.step.{name}"]) for name in names}
    assert len(steps) == 1 and steps.pop() > 1
    resumed = fresh(seed=3)
    resumed.load(state)
    for number in (2, 3):
        ours.train(number)
        resumed.train(number)
    assert_equal_states(ours.state(), resumed.state(), tolerance=0)


def planted(epochs=40, **options):
    cut = split(
        synthetic(users=200, items=150, interactions_per_user=15, groups=5, categories=10, skew=0.3),
        tiny.TINY_STRICT,
        0,
    )
    ours = fresh(
        cut.training, **{"dim": 16, "batch_size": 2000, "learning_rate": 0.01, "regularisation": 0.001, **options}
    )
    return cut, ours, [ours.train(number) for number in range(1, epochs + 1)]


def test_planted_groups_are_learnt_and_margins_neither_vanish_nor_explode():
    cut, ours, losses = planted()
    assert losses[-1] < 0.5 * losses[0]
    evaluator = Evaluator(cut, tiny.TINY_STRICT, 0)
    hits = {}
    for name, model in (("pmlam", ours), ("popularity", Popularity().model(None, cut.training, 0, "float64"))):
        card = evaluator.scorecard()
        if name == "popularity":
            model.train(1)
        card.add(torch.arange(cut.users), model.scorer()(torch.arange(cut.users)))
        hits[name] = card.result().metrics("test")["hr@5"]
    assert hits["pmlam"] > hits["popularity"] + 10.0
    for relation, margins in margins_of(ours).items():
        assert 0.1 < float(margins.mean()) < 10.0, relation
        assert float(margins.std()) > 0.02, relation


def margins_of(ours):
    batch = first_batch(ours, size=2000)
    plain, networks = plain_of(batch), networks_of(ours)
    return {relation: plain.margin(batch.theta, relation, networks[relation]) for relation in batch.triples}
