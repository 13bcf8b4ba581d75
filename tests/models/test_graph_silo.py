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


@pytest.mark.parametrize("score", ["distance", "dot", "biased", "scaled", "normalised"])
@pytest.mark.parametrize("denominator", ["all", "paper"])
def test_other_scores_have_the_same_loss(score, denominator):
    """One pair after another; and what is scored afterwards is what was trained."""
    company = next(iter(silos_of(companies(score=score, denominator=denominator)).values()))
    company.train(1, None)
    with torch.no_grad():
        for name in ("bias", "scale"):
            if name in company.params:
                company.params[name].add_(torch.randn(company.params[name].shape, dtype=torch.float64))
    points = company.encode()
    users, items = points[: company.data.users], points[company.data.users :]
    if score == "normalised":
        torch.testing.assert_close(points.norm(dim=1), torch.ones(len(points), dtype=torch.float64))

    def compared(user, item):
        if score == "dot":
            return users[user] @ items[item]
        found = -(users[user] - items[item]).square().sum()
        if score == "biased":
            return found + company.params["bias"][item]
        return found * company.params["scale"].exp() if score in ("scaled", "normalised") else found

    user_of, item_of = torch.tensor([3, 0, 3]), torch.tensor([[1, 2, 0], [2, 1, 1], [0, 0, 2]])
    listed = torch.tensor([4, 9, 17])
    found = company.rating(users, items[listed], user_of, item_of, listed)
    expected = []
    for user, row in zip(user_of.tolist(), listed[item_of].tolist(), strict=True):
        scores = torch.stack([compared(user, item) for item in row])
        expected.append(torch.logsumexp(scores if denominator == "all" else scores[1:], dim=0) - scores[0])
    torch.testing.assert_close(found, torch.stack(expected).mean())
    scored = company.scorer()(torch.tensor([5]))[0]
    for item in (0, 11):
        torch.testing.assert_close(scored[item], compared(5, item).detach())


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
