import numpy as np
import pytest
import torch

from confed.models.graph import Graph
from confed.testing import tiny


def dense(data, loops):
    nodes = data.users + data.items
    adjacency = np.eye(nodes) if loops else np.zeros((nodes, nodes))
    for user, item in zip(data.positives.row_of, data.positives.values, strict=True):
        adjacency[user, data.users + item] = adjacency[data.users + item, user] = 1.0
    degree = adjacency.sum(axis=1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros(nodes), where=degree > 0)
    return torch.from_numpy(root[:, None] * adjacency * root)


@pytest.mark.parametrize("loops", [True, False])
def test_smoothing_is_the_product_with_the_normalised_matrix(loops):
    data = tiny.cut().training
    graph, matrix = Graph(data, torch.float64, loops=loops), dense(data, loops)
    nodes = torch.randn(data.users + data.items, 5, dtype=torch.float64)
    torch.testing.assert_close(graph.smooth(nodes), matrix @ nodes)
    torch.testing.assert_close(graph.power(nodes, 3), matrix @ matrix @ matrix @ nodes)
    mean = (nodes + matrix @ nodes + matrix @ matrix @ nodes) / 3
    torch.testing.assert_close(graph.propagate(nodes, 2), mean)


@pytest.mark.parametrize("chosen", [[0], [30, 2, 61, 17], list(range(84)), []])
def test_a_passage_has_the_rows_of_some_nodes_there_and_their_columns_back(chosen):
    data = tiny.cut().training
    graph, matrix = Graph(data, torch.float64, loops=True), dense(data, True)
    some = torch.tensor(chosen, dtype=torch.int64)
    passage = graph.around(some)
    nodes = torch.randn(data.users + data.items, 5, dtype=torch.float64)
    torch.testing.assert_close(passage.there @ nodes, matrix[some] @ nodes)
    torch.testing.assert_close(passage.back @ nodes[some], matrix[:, some] @ nodes[some])


def test_with_loops_a_node_without_edges_keeps_its_row():
    data = tiny.cut().training
    lonely = np.setdiff1d(np.arange(data.items), data.positives.values)
    nodes = torch.randn(data.users + data.items, 3, dtype=torch.float64)
    smoothed = Graph(data, torch.float64, loops=True).power(nodes, 3)
    for item in lonely:
        torch.testing.assert_close(smoothed[data.users + item], nodes[data.users + item])
