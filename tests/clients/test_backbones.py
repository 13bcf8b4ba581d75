import pytest
import torch

from confed.clients.backbones import Dot, LinearHead, NeuMF, Scalar
from confed.clients.backbones.base import inner
from confed.initial import normal, uniform, zeros

BACKBONES = {
    "dot": Dot(6, 4, 0.1),
    "linear": LinearHead(6, 4),
    "scalar": Scalar(6),
    "gmf": NeuMF(6, 4, (4, 2), "gmf", normal(0.1)),
    "mlp": NeuMF(6, 4, (4, 2), "mlp", normal(0.1)),
    "neumf": NeuMF(6, 4, (4, 2), "neumf", normal(0.1)),
}


def random_params(backbone, clients, generator):
    draw = {p.name: torch.randn(clients, *p.shape, generator=generator, dtype=torch.float64) for p in backbone.params}
    items = {p.name for p in backbone.named(role="item")}
    return {n: t for n, t in draw.items() if n not in items}, {n: t for n, t in draw.items() if n in items}


@pytest.mark.parametrize("name", BACKBONES)
def test_broadcasting_equals_one_client_at_a_time(name):
    """Shared tables and networks come with a client axis of 1; the scores must not notice."""
    backbone = BACKBONES[name]
    params, tables = random_params(backbone, 3, torch.Generator().manual_seed(0))
    shared = {p.name for p in backbone.named(scope="shared")} | {p.name for p in backbone.named(role="item")}
    params = {n: t[:1] if n in shared else t for n, t in params.items()}
    tables = {n: t[:1] for n, t in tables.items()}
    together = backbone.logits(params, tables).expand(3, 6)
    for client in range(3):
        own = {n: t if n in shared else t[client : client + 1] for n, t in params.items()}
        torch.testing.assert_close(together[client : client + 1], backbone.logits(own, tables))


def test_formulas_by_hand():
    rows = torch.tensor([[[1.0, 2.0], [0.0, -1.0]]])
    user = torch.tensor([[3.0, 1.0]])
    assert Dot(2, 2, 1.0).logits({"user": user}, {"items": rows}).tolist() == [[5.0, -1.0]]
    head = {"weight": user, "bias": torch.tensor([[0.5]])}
    assert LinearHead(2, 2).logits(head, {"items": rows}).tolist() == [[5.5, -0.5]]
    assert Scalar(2).logits({}, {"items": rows[:, :, :1]}).tolist() == [[1.0, 0.0]]


def test_neumf_by_hand():
    """One layer of width 1: tower max(0, w·[p; q] + c), GMF part h·(p ⊙ q)."""
    backbone = NeuMF(1, 1, (1,), "neumf", normal(1.0))
    params = {
        "gmf_user": torch.tensor([[2.0]]),
        "mlp_user": torch.tensor([[3.0]]),
        "weight_0": torch.tensor([[[0.5, -1.0]]]),
        "bias_0": torch.tensor([[0.25]]),
        "head": torch.tensor([[10.0, 100.0]]),
        "head_bias": torch.tensor([[1.0]]),
    }
    rows = {"gmf_items": torch.tensor([[[4.0]]]), "mlp_items": torch.tensor([[[0.75]]])}
    tower = max(0.0, 0.5 * 3.0 - 1.0 * 0.75 + 0.25)
    assert backbone.logits(params, rows).item() == pytest.approx(10 * 8.0 + 100 * tower + 1.0)


def test_item_scope_decides_what_travels():
    assert {p.name for p in LinearHead(6, 4).named(scope="shared")} == {"items"}
    assert not LinearHead(6, 4, items_scope="private").named(scope="shared")
    shared = {p.name for p in BACKBONES["neumf"].named(scope="shared")}
    assert not {n for n in shared if n.endswith("_user")}


def test_initialisers():
    generator = torch.Generator().manual_seed(0)
    assert float(normal(0.1)((200, 200), generator).std()) == pytest.approx(0.1, rel=0.02)
    drawn = uniform(0.5)((100, 100), generator)
    assert float(drawn.abs().max()) <= 0.5 and float(drawn.std()) == pytest.approx(0.5 / 3**0.5, rel=0.05)
    assert not zeros((3,), generator).any()


def test_initial_values_depend_on_seed_and_name_only():
    spec = BACKBONES["dot"].params[1]
    assert torch.equal(spec.initial(0, torch.float32), spec.initial(0, torch.float64).float())
    assert not torch.equal(spec.initial(0, torch.float32), spec.initial(1, torch.float32))


@pytest.mark.parametrize("shapes", [(1, 3), (3, 1), (3, 3), (1, 1)])
def test_inner(shapes):
    rows, vector = torch.randn(shapes[0], 5, 4), torch.randn(shapes[1], 4)
    torch.testing.assert_close(inner(rows, vector), (rows * vector[:, None]).sum(-1))
