import pytest
import torch
from torch import nn
from torch.nn import functional

from confed.methods.neumf import NeuMF
from confed.testing import tiny
from tests.models.scores import scores_of

OPTIONS = {"dim": 8, "batch_size": 64, "learning_rate": 0.01, "init_deviation": 0.1}


class Plain(nn.Module):
    """The model as it is usually written: embeddings, a tower on the concatenation, one output layer."""

    def __init__(self, variant):
        super().__init__()
        self.variant = variant
        self.tables = nn.ModuleDict(
            {f"{branch}_{side}": nn.Embedding(rows, 8)
             for branch in ("gmf", "mlp")
             for side, rows in (("users", tiny.USERS), ("items", tiny.ITEMS))}
        )  # fmt: skip
        self.tower = nn.ModuleList(nn.Linear(i, o) for i, o in ((16, 8), (8, 4), (4, 2)))
        self.output = nn.Linear({"gmf": 8, "mlp": 2, "neumf": 10}[variant], 1)
        self.double()

    def forward(self, users, items):
        product = self.tables["gmf_users"](users) * self.tables["gmf_items"](items)
        hidden = torch.cat([self.tables["mlp_users"](users), self.tables["mlp_items"](items)], dim=1)
        for layer in self.tower:
            hidden = torch.relu(layer(hidden))
        features = {"gmf": product, "mlp": hidden, "neumf": torch.cat([product, hidden], dim=1)}
        return self.output(features[self.variant])[:, 0]

    def named(self):
        """Our names."""
        found = {name: table.weight for name, table in self.tables.items()}
        for number, layer in enumerate(self.tower):
            found |= {f"weight_{number}": layer.weight, f"bias_{number}": layer.bias}
        return found | {"head": self.output.weight, "head_bias": self.output.bias}


def fresh(**options):
    method = NeuMF()
    return method.model(method.config("tiny", {**OPTIONS, **options}), tiny.cut().training, 3, "float64")


def twin(ours, variant):
    model = Plain(variant)
    with torch.no_grad():
        for name, value in model.named().items():
            if name in ours.params:
                value.copy_(ours.params[name].view_as(value))
    return model


@pytest.mark.parametrize("variant", ["gmf", "mlp", "neumf"])
def test_an_epoch_equals_the_plain_module(variant):
    ours = fresh(variant=variant)
    model = twin(ours, variant)
    adam = torch.optim.Adam(model.parameters(), lr=0.01, foreach=False)
    total = 0.0
    for users, items, labels in zip(*(rows.split(64) for rows in ours.rows(1)), strict=True):
        adam.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(model(users, items), labels)
        total += loss.item() * len(labels)
        loss.backward()
        adam.step()
    assert ours.train(1) == pytest.approx(total / len(ours.rows(1)[0]))
    for name, value in model.named().items():
        if name in ours.params:
            expected = value.detach().view_as(ours.params[name])
            torch.testing.assert_close(ours.params[name].detach(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("variant", ["gmf", "mlp", "neumf"])
def test_all_pairs_are_scored_as_single_pairs_are(variant):
    ours = fresh(variant=variant)
    ours.train(1)
    users = torch.arange(tiny.USERS).repeat_interleave(tiny.ITEMS)
    items = torch.arange(tiny.ITEMS).repeat(tiny.USERS)
    expected = twin(ours, variant)(users, items).detach().view(tiny.USERS, tiny.ITEMS)
    torch.testing.assert_close(scores_of(ours), expected, rtol=1e-9, atol=1e-9)
    assert not ours.scorer()(torch.arange(2)).requires_grad


def test_shapes_and_initial_values():
    params = fresh(dim=32, init_deviation=0.01).params
    assert [tuple(params[f"weight_{layer}"].shape) for layer in range(3)] == [(32, 64), (16, 32), (8, 16)]
    assert params["head"].shape == (40,)
    assert params["head_bias"].item() == 0.0
    for name, bound in (("weight_0", 64**-0.5), ("bias_1", 32**-0.5), ("head", (3 / 40) ** 0.5)):
        largest = float(params[name].detach().abs().max())
        assert 0.8 * bound < largest <= bound
    for branch in ("gmf", "mlp"):
        assert abs(float(params[f"{branch}_items"].detach().std()) - 0.01) < 0.001
    assert not torch.equal(params["gmf_items"], params["mlp_items"])


def test_variants_have_only_their_own_branches():
    assert not any(name.startswith(("mlp", "weight", "bias")) for name in fresh(variant="gmf").params)
    assert not any(name.startswith("gmf") for name in fresh(variant="mlp").params)
