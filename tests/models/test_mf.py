import torch
from torch.nn import functional

from confed.methods.mf import MF
from confed.ragged import Ragged
from confed.testing import tiny
from tests.models.scores import scores_of

OPTIONS = {"dim": 5, "batch_size": 32, "learning_rate": 0.02, "init_deviation": 0.1}


def fresh(**options):
    method = MF()
    return method.model(method.config("tiny", {**OPTIONS, **options}), tiny.cut().training, 3, "float64")


def test_an_epoch_equals_autograd_and_torch_s_adam():
    """The last batch is a short one."""
    ours = fresh()
    users, items = (ours.params[name].clone().requires_grad_() for name in ("users", "items"))
    adam = torch.optim.Adam([users, items], lr=0.02, foreach=False)
    total = 0.0
    for batch in zip(*(rows.split(32) for rows in ours.rows(1)), strict=True):
        logits = (users[batch[0]] * items[batch[1]]).sum(dim=1)
        loss = functional.binary_cross_entropy_with_logits(logits, batch[2])
        total += loss.item() * len(logits)
        adam.zero_grad()
        loss.backward()
        adam.step()
    loss = ours.train(1)
    torch.testing.assert_close(ours.params["users"], users.detach(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.params["items"], items.detach(), rtol=1e-9, atol=1e-9)
    assert abs(loss - total / len(ours.rows(1)[0])) < 1e-9


def test_the_score_is_the_inner_product():
    ours = fresh()
    ours.train(1)
    torch.testing.assert_close(scores_of(ours), ours.params["users"] @ ours.params["items"].T)


def test_initial_tables():
    ours = fresh(dim=64, init_deviation=0.01)
    for table, rows in (("users", tiny.USERS), ("items", tiny.ITEMS)):
        assert ours.params[table].shape == (rows, 64)
        assert abs(float(ours.params[table].std()) - 0.01) < 0.001


def test_defaults_are_those_of_the_paper():
    config = MF().config("ml-100k", {})
    assert (config.dim, config.learning_rate, config.batch_size, config.train_negatives) == (32, 0.001, 256, 4)
    assert config.init_deviation == 0.01
    assert MF.rounds == 100


def test_it_learns_two_blocks():
    """Users of one half like items of the same half; an item of the own half that was left out beats the others."""
    from confed.data.split import TrainingData

    half = [0, 1, 2, 3, 4, 5]
    rows = [[i + 6 * (user // 6) for i in half if i != user % 6] for user in range(12)]
    positives = Ragged.of(rows)
    data = TrainingData(12, positives, positives)
    method = MF()
    ours = method.model(method.config("tiny", {**OPTIONS, "train_negatives": 2}), data, 0, "float64")
    for number in range(1, 31):
        ours.train(number)
    scores = ours.scorer()(torch.arange(12))
    for user in range(12):
        left_out = user % 6 + 6 * (user // 6)
        other_half = scores[user, 6:] if user < 6 else scores[user, :6]
        assert scores[user, left_out] > other_half.max()
