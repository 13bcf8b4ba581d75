import pytest
import torch

from confed.models.metric import metric_loss


def batch(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    users = torch.randn(5, 7, generator=generator, dtype=dtype).requires_grad_()
    items = torch.randn(9, 7, generator=generator, dtype=dtype).requires_grad_()
    user_of = torch.randint(0, 5, (20,), generator=generator)
    item_of = torch.randint(0, 9, (20, 4), generator=generator)
    return users, items, user_of, item_of


def plainly(users, items, user_of, item_of, whole):
    distances = (users[user_of][:, None] - items[item_of]).square().sum(dim=2)
    others = distances if whole else distances[:, 1:]
    return (distances[:, 0] + torch.logsumexp(-others, dim=1)).mean()


@pytest.mark.parametrize("whole", [True, False])
def test_value_and_gradients_against_autograd(whole):
    users, items, user_of, item_of = batch()
    loss = metric_loss(users, items, user_of, item_of, whole=whole)
    expected = plainly(users, items, user_of, item_of, whole)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    found = torch.autograd.grad(3 * loss, (users, items))
    for one, other in zip(found, torch.autograd.grad(3 * expected, (users, items)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("whole", [True, False])
def test_finite_differences(whole):
    users, items, user_of, item_of = batch()
    assert torch.autograd.gradcheck(lambda u, i: metric_loss(u, i, user_of, item_of, whole=whole), (users, items))


def test_single_precision():
    users, items, user_of, item_of = batch(torch.float32)
    loss = metric_loss(users, items, user_of, item_of, whole=True)
    torch.testing.assert_close(loss, plainly(users, items, user_of, item_of, True))
    assert loss.dtype == torch.float32


def test_far_away_is_finite():
    users, items = torch.zeros(1, 2, dtype=torch.float64), torch.full((3, 2), 1e6, dtype=torch.float64)
    users.requires_grad_()
    loss = metric_loss(users, items, torch.tensor([0]), torch.tensor([[0, 1, 2]]), whole=True)
    assert float(loss.detach()) == pytest.approx(torch.log(torch.tensor(3.0)).item())
    assert torch.isfinite(torch.autograd.grad(loss, users)[0]).all()


def test_the_printed_denominator_has_no_lower_bound():
    """Why the positive stands in ours: pushing negatives away lowers the printed loss for ever (D-36)."""
    users = torch.zeros(1, 2, dtype=torch.float64)
    places, pairs = torch.tensor([0]), torch.tensor([[0, 1]])
    losses = {
        whole: [
            float(metric_loss(users, torch.tensor([[0.0, 0.0], [d, 0.0]]).double(), places, pairs, whole=whole))
            for d in (1.0, 10.0, 100.0)
        ]
        for whole in (True, False)
    }
    assert losses[False][2] < losses[False][1] < -90
    assert min(losses[True]) >= 0
