import pytest
import torch

from confed.models.graph_silo import _Power
from tests.methods.companies import silos_of
from tests.models.test_preference import companies


def silo():
    return next(iter(silos_of(companies()).values()))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("chosen", [None, [7, 3, 95, 0]])
def test_the_gradient_passes_through_the_same_power(layers, chosen):
    company = silo()
    graph = company.graph
    passage = graph.whole() if chosen is None else graph.around(torch.tensor(chosen))
    nodes = torch.randn(company.data.users + company.data.items, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda n: _Power.apply(n, graph, layers, passage), nodes, fast_mode=True)


def test_some_nodes_are_encoded_as_among_all():
    company = silo()
    company.train(1, None)
    chosen = torch.tensor([5, 2, company.data.users + 1])
    torch.testing.assert_close(company.encode(chosen), company.encode()[chosen])


def test_scores_are_minus_the_squared_wasserstein_distance():
    company = silo()
    company.train(1, None)
    points = company.encode().detach()
    users, items = points[: company.data.users], points[company.data.users :]
    scores = company.scorer()(torch.arange(company.data.users))
    for user in range(0, company.data.users, 7):
        for item in range(0, company.data.items, 5):
            expected = -(users[user] - items[item]).square().sum()
            torch.testing.assert_close(scores[user, item], expected)


def test_rows_have_every_positive_once_and_negatives_that_are_none():
    company = silo()
    users, items = company.rows(2, 1)
    pairs = sorted(zip(users.tolist(), items[:, 0].tolist(), strict=True))
    data = company.data
    assert pairs == sorted(zip(data.positives.row_of.tolist(), data.positives.values.tolist(), strict=True))
    for user, listed in zip(users.tolist(), items[:, 1:].tolist(), strict=True):
        assert not set(listed) & set(data.positives[user].tolist())
        assert len(set(listed)) == len(listed)


def test_every_epoch_draws_anew():
    company = silo()
    assert not torch.equal(company.rows(1, 0)[1], company.rows(1, 1)[1])
    assert not torch.equal(company.rows(1, 1)[1], company.rows(2, 0)[1])
