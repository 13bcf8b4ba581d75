"""GPFedRec against its definition: one client after another by autograd, and the graph by loops over pairs."""

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, linear, mse_loss

from confed.clients.sampling import draw_rows
from confed.random import Stream
from confed.server.strategies import Neighbourhood
from confed.server.strategies.graph import _cosines
from confed.testing import PeopleConformance, tiny
from confed.testing.conformance import SEED
from confed.testing.states import whole_state

SMALL = {"dim": 8, "batch_size": 16, "learning_rate": 0.05, "rate_factor": 8.0, "local_epochs": 2}
NETS = [f"{kind}_{layer}" for layer in range(3) for kind in ("weight", "bias")]
OWN = ["mlp_user", *NETS, "head", "head_bias"]


def score(params, items):
    hidden = torch.cat([params["mlp_user"].expand(len(items), -1), params["mlp_items"][items]], dim=1)
    for layer in range(3):
        hidden = torch.relu(linear(hidden, params[f"weight_{layer}"], params[f"bias_{layer}"]))
    return hidden @ params["head"] + params["head_bias"]


def trained_plainly(config, people, before, targets, number):
    """By client: its parameters after local training, table included."""
    rows = draw_rows(
        people.data, np.arange(people.data.users), 4, Stream.of(SEED, "negatives", number), torch.float64, whole=True
    )
    rates = dict.fromkeys(OWN, config.learning_rate)
    rates["mlp_user"] = config.learning_rate * config.rate_factor - config.learning_rate
    rates["mlp_items"] = config.learning_rate * tiny.ITEMS * config.rate_factor - config.learning_rate
    held = {}
    for client in range(tiny.USERS):
        held[client] = {name: before[f"client.{name}"][client].clone() for name in OWN}
        held[client]["mlp_items"] = before["server.mlp_items"].clone()
    for epoch in range(config.local_epochs):
        for index, labels, weights in rows.batches(config.batch_size, epoch, Stream.of(SEED, "shuffle", number)):
            for place in range(len(index)):
                client, real = int(rows.clients[place]), weights[place] > 0
                params = {name: value.requires_grad_() for name, value in held[client].items()}
                loss = binary_cross_entropy_with_logits(score(params, index[place][real]), labels[place][real])
                loss = loss + config.near * mse_loss(params["mlp_items"], targets[client])
                slopes = torch.autograd.grad(loss, list(params.values()))
                held[client] = {
                    name: (value - rates[name] * slope).detach()
                    for (name, value), slope in zip(params.items(), slopes, strict=True)
                }
    return held


def links(tables, by="similarity", threshold=1.0, nearest=None):
    """The published loops."""
    users = len(tables)
    like = torch.zeros(users, users, dtype=torch.float64)
    for u in range(users):
        for v in range(users):
            cosine = torch.cosine_similarity(tables[u].flatten(), tables[v].flatten(), dim=0)
            like[u, v] = cosine if by == "similarity" else 1 - cosine
    found = torch.zeros_like(like)
    for u in range(users):
        near = (
            torch.argsort(like[u], descending=True)[:nearest].tolist()
            if nearest
            else [v for v in range(users) if like[u, v] > threshold * like.mean()]
        )
        for v in near or [u]:
            found[u, v] = 1 / max(len(near), 1)
    return found


class GPFedRecConformance(PeopleConformance):
    method = "gpfedrec"
    exchanges = 2  # training, and the tables

    def test_two_rounds_equal_the_equations(self) -> None:
        config = self.terms().config
        trainer = self.federation(chunk=7)
        common = whole_state(trainer)["server.mlp_items"]
        targets = dict.fromkeys(range(tiny.USERS), common)
        for number in (1, 2):
            before = {name: value.clone() for name, value in whole_state(trainer).items()}
            held = trained_plainly(config, self.people(trainer), before, targets, number)
            tables = torch.stack([held[client]["mlp_items"] for client in range(tiny.USERS)])
            by = "distance" if config.reproduction.graph_by_distance else "similarity"
            graph = links(tables, by, config.threshold, config.neighbours)
            means = tables
            for _ in range(config.layers):
                means = torch.einsum("uv,vid->uid", graph, means)
            targets = dict(enumerate(means))
            trainer.round(number)
            after = whole_state(trainer)
            torch.testing.assert_close(after["server.sent"], tables, rtol=1e-8, atol=1e-9)
            torch.testing.assert_close(after["server.mlp_items"], means.mean(dim=0), rtol=1e-8, atol=1e-9)
            for name in OWN:
                expected = torch.stack([held[client][name] for client in range(tiny.USERS)])
                torch.testing.assert_close(after[f"client.{name}"], expected, rtol=1e-8, atol=1e-9)
        download = trainer.server.download()
        torch.testing.assert_close(download.own_to(torch.arange(tiny.USERS))["target"], means, rtol=1e-8, atol=1e-9)


class TestGPFedRec(GPFedRecConformance):
    options = SMALL


class TestNearest(GPFedRecConformance):
    options = {**SMALL, "neighbours": 5, "layers": 2, "near": 0.3}


class TestByDistance(GPFedRecConformance):
    options = {**SMALL, "reproduction": {"graph_by_distance": True}}


def test_who_is_like_nobody_keeps_its_own():
    cosines = torch.tensor([[1.0, 0.2, 0.1], [0.2, 1.0, 0.9], [0.1, 0.9, 1.0]], dtype=torch.float64)
    found = Neighbourhood(threshold=1.9).weights(cosines)
    assert torch.equal(found, torch.eye(3, dtype=torch.float64))
    assert Neighbourhood().weights(cosines).tolist() == [[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]
    assert torch.equal(Neighbourhood(nearest=9).weights(cosines), torch.full((3, 3), 1 / 3, dtype=torch.float64))


def test_cosines_do_not_depend_on_how_items_are_cut(monkeypatch):
    vectors = torch.randn(5, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    vectors[3] = 0.0
    expected = torch.stack([torch.cosine_similarity(vectors, row[None], dim=1) for row in vectors])
    for stretch in (7, 40):
        monkeypatch.setattr("confed.server.strategies.graph._STRETCH", stretch)
        torch.testing.assert_close(_cosines(vectors), expected)


def test_turns_are_as_many_clients_as_fit(monkeypatch):
    def turns():
        return [len(turn) for turn in TestGPFedRec().federation().server.strategy.turns(torch.arange(tiny.USERS), 1)]

    assert turns() == [tiny.USERS]
    monkeypatch.setattr("confed.server.strategies.graph._TURN_VALUES", 8 * tiny.ITEMS * 5)
    assert turns() == [5, 5, 5, 5, 4]


@pytest.mark.parametrize("values", [1, 8 * tiny.ITEMS * 7])
def test_turns_change_nothing(values, monkeypatch):
    """All tables are there before anything is made of them."""
    whole = TestGPFedRec().trained(2).state()
    monkeypatch.setattr("confed.server.strategies.graph._TURN_VALUES", values)
    for name, value in TestGPFedRec().trained(2).state().items():
        torch.testing.assert_close(value, whole[name], rtol=1e-9, atol=1e-9)


class TestTurns(PeopleConformance):
    """Seven clients at a time."""

    method = "gpfedrec"
    options = SMALL
    exchanges = 8

    @pytest.fixture(autouse=True)
    def _few_at_once(self, monkeypatch):
        monkeypatch.setattr("confed.server.strategies.graph._TURN_VALUES", 8 * tiny.ITEMS * 7)


def test_noise_on_the_table_that_is_sent():
    quiet, noisy = (TestGPFedRec().trained(1, TestGPFedRec().federation(options=o)) for o in ({}, {"noise_scale": 0.1}))
    noise = noisy.state()["server.sent"] - quiet.state()["server.sent"]
    assert abs(float(noise.abs().mean()) - 0.1) < 0.01
