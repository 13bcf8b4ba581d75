import pytest
import torch
from torch.nn import functional

from confed.clients.objectives import ItemSimilarity, Whole
from confed.random import Stream

CLIENTS, ITEMS = 3, 12
OF = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 3])


def whole(tables, liked, side=True):
    sent = {"membership": OF.to(torch.uint8)} if side else {}
    return Whole({"items": tables}, sent, liked, torch.full((CLIENTS,), -1), Stream.of(0, "dense"), 0)


def case():
    generator = torch.Generator().manual_seed(0)
    tables = torch.randn(CLIENTS, ITEMS, 4, generator=generator, dtype=torch.float64)
    return tables, torch.rand(CLIENTS, ITEMS, generator=generator) < 0.5


def by_loop(table, liked):
    """Eq. 10, one pair at a time; differentiable."""
    total = torch.zeros((), dtype=table.dtype)
    for i in torch.nonzero(liked)[:, 0].tolist():
        partners = [z for z in range(ITEMS) if z != i and OF[z] == OF[i]]
        for z in partners:
            total = total - functional.cosine_similarity(table[i], table[z], dim=0) / len(partners)
    return total / liked.sum()


def test_value_and_gradient_equal_the_loop_and_autograd():
    tables, liked = case()
    values, gradients = ItemSimilarity(("items",), 0.3).gradients(whole(tables, liked))
    for client in range(CLIENTS):
        table = tables[client].clone().requires_grad_()
        expected = 0.3 * by_loop(table, liked[client])
        expected.backward()
        assert float(values[client]) == pytest.approx(expected.item())
        torch.testing.assert_close(gradients["items"][client], table.grad)


def test_a_client_without_positives_and_a_server_without_categories():
    tables, liked = case()
    values, gradients = ItemSimilarity(("items",), 1.0).gradients(whole(tables, torch.zeros_like(liked)))
    assert not values.any() and not gradients["items"].any()
    values, gradients = ItemSimilarity(("items",), 1.0).gradients(whole(tables, liked, side=False))
    assert not values.any() and not gradients
