import numpy as np
import pytest
import torch
from torch.nn import functional

from confed.data.split import TrainingData
from confed.methods.lightgcn import LightGCN
from confed.models.graph import Graph
from confed.ragged import Ragged
from confed.testing import tiny
from tests.models.scores import scores_of

OPTIONS = {"dim": 6, "batch_size": 64, "learning_rate": 0.02, "regularisation": 0.01}


def fresh(data=None, seed=3, **options):
    method = LightGCN()
    config = method.config("tiny", {**OPTIONS, **options})
    return method.model(config, data or tiny.cut().training, seed, "float64")


def dense(data):
    """Â as a matrix, from the definition."""
    nodes = data.users + data.items
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    for user in range(data.users):
        for item in data.positives[user]:
            adjacency[user, data.users + item] = adjacency[data.users + item, user] = 1.0
    scale = adjacency.sum(dim=1).pow(-0.5)
    scale[torch.isinf(scale)] = 0.0
    return scale[:, None] * adjacency * scale


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_propagation_equals_the_dense_matrix(layers):
    data = tiny.cut().training
    table = torch.randn(data.users + data.items, 6, dtype=torch.float64)
    matrix = dense(data)
    expected = sum(torch.linalg.matrix_power(matrix, power) @ table for power in range(layers + 1)) / (layers + 1)
    torch.testing.assert_close(Graph(data, torch.float64).propagate(table, layers), expected)


def test_items_nobody_has_and_repeated_pairs():
    """Item 2 has no edge and keeps only its own row; user 0's repeated pair is one edge."""
    positives = Ragged.of([[0, 0, 1], [1]])
    data = TrainingData(3, positives, positives.unique())
    graph = Graph(data, torch.float64)
    table = torch.eye(5, dtype=torch.float64)
    torch.testing.assert_close(graph.smooth(table), dense(data))
    assert float(graph.smooth(table)[4].abs().sum()) == 0.0


@pytest.mark.parametrize("protocol", [tiny.TINY_STRICT, tiny.TINY_PAPER], ids=["strict", "paper"])
def test_no_held_out_edge_is_in_the_graph(protocol):
    cut = tiny.cut(protocol)
    graph = Graph(cut.training, torch.float64)
    source = np.repeat(np.arange(len(graph.edges.offsets) - 1), np.diff(graph.edges.offsets.numpy()))
    edges = set(zip(source.tolist(), graph.edges.neighbours.tolist(), strict=True))
    for held_out in (cut.validation, cut.test):
        for user, item in enumerate(held_out.tolist()):
            if item not in cut.training.positives[user]:
                assert (user, cut.users + item) not in edges
                assert (cut.users + item, user) not in edges
    assert len(edges) == 2 * len(cut.training.positives.unique().values)


def test_loss_and_gradient_equal_autograd_on_the_dense_matrix():
    ours = fresh()
    triples = tuple(rows[:50] for rows in ours.triples(1))
    table = ours.params["nodes"].clone().requires_grad_()
    matrix = dense(ours.data)
    final = sum(torch.linalg.matrix_power(matrix, power) @ table for power in range(4)) / 4
    user, positive, negative = (final[nodes] for nodes in triples)
    bpr = functional.softplus((user * negative).sum(1) - (user * positive).sum(1)).mean()
    norms = sum(table[nodes].square().sum() for nodes in triples)
    expected = bpr + 0.01 / (2 * 50) * norms
    expected.backward()
    loss, gradient = ours.loss_and_gradient(*triples)
    assert loss == pytest.approx(expected.item(), rel=1e-10)
    torch.testing.assert_close(gradient, table.grad, rtol=1e-9, atol=1e-12)


def test_triples_follow_the_official_sampler():
    """As many as interactions; users uniform over users, however many items they have; negatives outside training."""
    positives = Ragged.of([list(range(90)), [3], [1, 2]])
    data = TrainingData(100, positives, positives.unique())
    ours = fresh(data)
    drawn = [ours.triples(number) for number in range(1, 41)]
    assert all(len(rows) == 93 for triples in drawn for rows in triples)
    users, liked, negatives = (torch.cat(rows) for rows in zip(*drawn, strict=True))
    shares = torch.bincount(users, minlength=3) / len(users)
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), rtol=0, atol=0.03)
    for user in range(3):
        own = set(data.positives[user].tolist())
        assert set((liked[users == user] - 3).tolist()) == own
        assert not set((negatives[users == user] - 3).tolist()) & own
    assert set((negatives[users == 0] - 3).tolist()) == set(range(90, 100))


def test_the_protocol_s_excluded_items_are_never_negatives():
    positives = Ragged.of([[0, 1], [2]])
    data = TrainingData(5, positives, Ragged.of([[0, 1, 2, 3], [1, 2, 3, 4]]))
    drawn = [fresh(data).triples(number) for number in range(1, 11)]
    users, _, negatives = (torch.cat(rows) for rows in zip(*drawn, strict=True))
    assert set(users.tolist()) == {0, 1}
    assert torch.equal(negatives - 2, torch.where(users == 0, 4, 0))


def test_scores_are_inner_products_of_propagated_rows():
    ours = fresh()
    ours.train(1)
    final = ours.graph.propagate(ours.params["nodes"], 3)
    torch.testing.assert_close(scores_of(ours), final[: tiny.USERS] @ final[tiny.USERS :].T)
