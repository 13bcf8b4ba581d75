import pytest
import torch
from torch import nn
from torch.nn import functional

from confed.data.split import TrainingData
from confed.methods.etl import ETLF, ETLFC
from confed.models.autoencoder import AutoencoderSilo
from confed.models.binary_rows import dropout_factors, reconstruction
from confed.models.distributions import SMALLEST, unnamed
from confed.models.silo import Shared
from confed.ragged import Ragged
from confed.random import keyed
from confed.testing import assert_equal_states

SMALL = {"dim": 5, "batch_size": 4, "local_epochs": 2, "learning_rate": 0.01, "alignment": 0.5, "init_deviation": 0.3}
ROWS = [[0, 2, 5], [1, 2], [], [3, 4, 5, 7], [0, 6], [2, 3], [], [1, 5, 6], [0, 2, 5]]
ITEMS = 8
USERS = len(ROWS)
SHARED = [0, 2, 3, 6, 7]
SILENT = [2, 6]


def silo(rows=ROWS, shared=SHARED, seed=7, method=ETLF, dtype="float64", **options):
    ragged = Ragged.of(rows)
    data = TrainingData(ITEMS, ragged, ragged.unique())
    users = torch.tensor(shared, dtype=torch.int64)
    known = Shared.of(users, torch.arange(len(users)), data, everybody=len(users), seed=0)
    config = method().config("tiny", {**SMALL, **options})
    return AutoencoderSilo(config, config.pull, data, known, seed, dtype)


def received(shared=SHARED, dim=5, seed=0):
    draw = torch.Generator().manual_seed(seed)
    mean = torch.randn(len(shared), dim, generator=draw, dtype=torch.float64)
    deviation = torch.rand(len(shared), dim, generator=draw, dtype=torch.float64)
    return {"mean": mean, "deviation": deviation}


def dense(rows):
    table = torch.zeros(len(rows), ITEMS, dtype=torch.float64)
    for user in range(len(rows)):
        table[user, rows[user]] = 1.0
    return table


class Plain(nn.Module):
    """The model as it is usually written: dense rows, layers, one user after another where that is plainer."""

    def __init__(self, ours):
        super().__init__()
        self.first = nn.Linear(ITEMS, 5)
        self.mean, self.deviation = nn.Linear(5, 5), nn.Linear(5, 5)
        self.output = nn.Linear(5, ITEMS)
        self.users = nn.Embedding(USERS, 5)
        self.double()
        with torch.no_grad():
            for value, name in self.named():
                value.copy_(ours.params[name].T if name == "input" else ours.params[name])

    def named(self):
        yield self.users.weight, "users"
        layers = {"input": self.first, "mean": self.mean, "deviation": self.deviation, "output": self.output}
        for name, layer in layers.items():
            yield layer.weight, name
            yield layer.bias, f"{name}_bias"

    def encode(self, rows, users):
        hidden = torch.relu(self.first(rows))
        return self.mean(hidden) + self.users(users), functional.softplus(self.deviation(hidden)) + 1e-4

    def loss(self, rows, struck, users, silent, noise, target, weight):
        mean, deviation = self.encode(struck, users)
        logits = self.output(mean + deviation * noise)
        own = functional.binary_cross_entropy_with_logits(logits, rows, reduction="sum") / len(users)
        others = self.encode(torch.zeros(len(silent), ITEMS, dtype=torch.float64), silent)
        means, deviations = torch.cat([mean, others[0]]), torch.cat([deviation, others[1]])
        gaps = [
            (means[k] - target[user][0]).square().sum() + (deviations[k] - target[user][1]).square().sum()
            for k, user in enumerate(torch.cat([users, silent]).tolist())
            if user in target
        ]
        return own + weight * sum(gaps) / len(means)


def test_a_round_equals_the_plain_module():
    """Dropout, noise, both pulls towards the server's rows, users without items and weight decay, step by step."""
    ours, rows, weight_decay = silo(weight_decay=0.1), dense(ROWS), 0.1
    plain = Plain(ours)
    adam = torch.optim.Adam(plain.parameters(), lr=0.01, weight_decay=weight_decay, foreach=False)
    sent = received()
    target = {user: (sent["mean"][k], sent["deviation"][k]) for k, user in enumerate(SHARED)}
    active = torch.tensor([user for user in range(USERS) if ROWS[user]])
    step = 0
    for epoch in range(2):
        order = torch.randperm(len(active), generator=keyed(7, "shuffle", 2, epoch))
        for batch, users in enumerate(active[order].split(4)):
            ones = [(u, i) for u in users.tolist() for i in ROWS[u]]
            factors = dropout_factors((len(ones),), 0.5, keyed(7, "dropout", 2, step), torch.float64)
            struck = torch.zeros(USERS, ITEMS, dtype=torch.float64)
            for (user, item), factor in zip(ones, factors, strict=True):
                struck[user, item] = factor
            noise = torch.randn(len(users), 5, generator=keyed(7, "noise", 2, step), dtype=torch.float64)
            silent = torch.tensor(SILENT).tensor_split(2)[batch]
            adam.param_groups[0]["weight_decay"] = weight_decay / len(users)
            adam.zero_grad()
            plain.loss(rows[users], struck[users], users, silent, noise, target, 0.5).backward()
            adam.step()
            step += 1
    ours.train(2, sent)
    for value, name in plain.named():
        expected = value.T if name == "input" else value
        torch.testing.assert_close(ours.params[name].detach(), expected.detach(), rtol=1e-9, atol=1e-9)


def test_decay_beside_the_mean_is_decay_beside_the_sum():
    """What the docstring promises: one step equals that of the published form, a sum with the whole decay."""
    ours = silo(weight_decay=0.3, batch_size=16, local_epochs=1, alignment=0.0, dropout=0.0)
    theirs = silo(weight_decay=0.3, batch_size=16, local_epochs=1, alignment=0.0, dropout=0.0)
    users = theirs.active[torch.randperm(7, generator=keyed(7, "shuffle", 1, 0))]
    mean, deviation = theirs.encode(users, keyed(7, "dropout", 1, 0)).split(5, dim=1)
    noise = torch.randn(7, 5, generator=keyed(7, "noise", 1, 0), dtype=torch.float64)
    loss = reconstruction(theirs.decode(mean + deviation * noise), theirs.rows.take(users.numpy()))
    params = list(theirs.params.values())
    adam = torch.optim.Adam(params, lr=0.01, weight_decay=0.3)
    loss.backward()
    adam.step()
    ours.train(1, None)
    for name, value in theirs.params.items():
        torch.testing.assert_close(ours.params[name], value, rtol=1e-5, atol=1e-6)


def test_repeated_interactions_count_once():
    once, twice = silo(), silo(rows=[[*row, *row] for row in ROWS])
    for one in (once, twice):
        one.train(1, None)
    assert_equal_states(once.state(), twice.state(), tolerance=0)


def test_an_epoch_trains_every_user_with_items_once_and_passes_the_others():
    ours = silo()
    seen, passed = [], []
    train_batch = ours.train_batch

    def spy(batch, users):
        seen.append(users)
        passed.append(batch.unheard)
        return train_batch(batch, users)

    ours.train_batch = spy
    ours.train(1, received())
    epochs = [torch.cat(seen[:2]), torch.cat(seen[2:])]
    assert not torch.equal(*epochs)
    for epoch in epochs:
        assert sorted(epoch.tolist()) == [user for user in range(USERS) if ROWS[user]]
    assert torch.cat(passed[:2]).tolist() == torch.cat(passed[2:]).tolist() == SILENT


def test_same_seed_same_result_and_another_seed_another():
    first, again, other = silo(), silo(), silo(seed=8)
    for one in (first, again, other):
        one.train(1, None)
        one.train(2, received())
    assert_equal_states(first.state(), again.state(), tolerance=0)
    assert not torch.equal(first.params["mean"], other.params["mean"])


@pytest.mark.parametrize("method", [ETLF, ETLFC])
def test_resumed_exactly(method):
    ours, fresh = silo(method=method), silo(method=method)
    ours.train(1, None)
    fresh.load({name: tensor.clone() for name, tensor in ours.state().items()})
    for one in (ours, fresh):
        one.train(2, received())
    assert_equal_states(ours.state(), fresh.state(), tolerance=0)


def test_another_round_draws_anew():
    once, later = silo(), silo()
    once.train(1, None)
    later.train(2, None)
    assert not torch.equal(once.params["output"], later.params["output"])


def test_somebody_without_items_is_known_by_what_others_say():
    ours = silo(alignment=5.0, learning_rate=0.05)
    sent = received()
    apart = [float((unnamed(ours.share()) - unnamed(sent))[[1, 3], :5].square().sum())]
    for number in range(1, 41):
        ours.train(number, sent)
    apart.append(float((unnamed(ours.share()) - unnamed(sent))[[1, 3], :5].square().sum()))
    assert apart[1] < 0.05 * apart[0]
    deviations = ours.share()["deviation"]
    torch.testing.assert_close(deviations[1], deviations[3])  # e_u is no part of σ


def test_nobody_is_told_that_the_silent_dislike_everything():
    """Without anything from the server their embeddings move by weight decay alone, and without that not at all."""
    ours = silo(weight_decay=0.0)
    before = ours.params["users"].detach().clone()
    ours.train(1, None)
    moved = (ours.params["users"].detach() != before).any(dim=1)
    assert moved.tolist() == [bool(row) for row in ROWS]


def test_scores_are_the_decoded_means():
    ours = silo()
    ours.train(1, None)
    plain = Plain(ours)
    mean, deviation = plain.encode(dense(ROWS), torch.arange(USERS))
    clients = torch.tensor([3, 0, 6])
    torch.testing.assert_close(ours.user_points(), torch.cat([mean, deviation], dim=1))
    local = ours.scorer()(clients)
    torch.testing.assert_close(local, plain.output(mean)[clients].detach())
    assert not local.requires_grad
    sent = received()
    expected = mean.detach().index_copy(0, torch.tensor(SHARED), sent["mean"])
    torch.testing.assert_close(ours.scorer(sent)(clients), plain.output(expected)[clients].detach())
    others = torch.tensor([user for user in range(USERS) if user not in SHARED])
    assert torch.equal(ours.scorer(sent)(others), ours.scorer()(others))


def test_what_is_shared_are_means_and_positive_deviations_of_shared_users():
    rows = silo().share()
    assert {name: tuple(tensor.shape) for name, tensor in rows.items()} == {"mean": (5, 5), "deviation": (5, 5)}
    assert float(rows["deviation"].min()) >= SMALLEST
    assert not any(tensor.requires_grad for tensor in rows.values())


def test_a_served_copy_scores_the_same():
    ours, fresh = silo(), silo()
    ours.train(1, None)
    fresh.load_serving(ours.serving_state())
    everybody = torch.arange(USERS)
    assert torch.equal(ours.scorer()(everybody), fresh.scorer()(everybody))


def test_users_with_the_same_row_differ_by_their_embeddings_only():
    ours = silo()
    points = ours.user_points().detach()
    gap = ours.params["users"].detach()[8] - ours.params["users"].detach()[0]
    torch.testing.assert_close(points[8, :5] - points[0, :5], gap)
    torch.testing.assert_close(points[8, 5:], points[0, 5:])


@pytest.mark.parametrize("options", [{"clusters": 1}, {"clusters": 3}, {"clusters": 15, "batch_size": 1}])
@pytest.mark.parametrize("rows", [ROWS, [[1, 4]] * USERS])
def test_co_clustering_of_few_or_identical_users(options, rows):
    ours = silo(rows=rows, method=ETLFC, dropout=0.0, **options)
    with torch.no_grad():
        ours.params["users"].zero_()
    for number in (1, 2):
        ours.train(number, received())
    assert all(bool(tensor.isfinite().all()) for tensor in ours.state().values())


def test_one_cluster_draws_the_batch_to_its_mean():
    """λ_C ℓ_C by hand: with M = 1 the mean squared distance of the points to their mean, which is held fixed."""
    ours = silo(method=ETLFC, clusters=1, clustering=0.7, alignment=0.0, batch_size=16, local_epochs=1)
    pulled = []
    step = ours.step
    ours.step = lambda loss: (pulled.append(loss.detach()), step(loss))[1]
    users = ours.active[torch.randperm(7, generator=keyed(7, "shuffle", 1, 0))]
    points = ours.encode(users, keyed(7, "dropout", 1, 0)).detach()
    rating = ours.train(1, None)
    spread = (points - points.mean(dim=0)).square().sum(dim=1).mean()
    assert float(pulled[0]) == pytest.approx(rating + 0.7 * float(spread))


def test_nobody_shared_nothing_sent():
    ours = silo(shared=[])
    ours.train(1, received(shared=[]))
    assert ours.share()["mean"].shape == (0, 5)


def test_the_loss_falls():
    ours = silo(dropout=0.2)
    losses = [ours.train(number, None) for number in range(1, 31)]
    assert losses[-1] < 0.7 * losses[0]


def test_single_precision_is_close():
    exact, single = silo(), silo(dtype="float32")
    for one in (exact, single):
        one.train(1, received())
    assert single.params["output"].dtype == torch.float32
    torch.testing.assert_close(single.params["output"].double(), exact.params["output"], rtol=1e-3, atol=1e-4)
