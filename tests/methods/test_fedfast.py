"""FedFast against its definition: plain clients, and ActvAGG by loops over clients, items and groups."""

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from confed.clients.sampling import draw_rows
from confed.random import Stream
from confed.server.selection import FromEveryGroup
from confed.testing import PeopleConformance, assert_equal_states, tiny
from confed.testing.conformance import SEED
from confed.testing.states import whole_state

SMALL = {"dim": 8, "batch_size": 16, "fewest": 1, "groups": 3, "init_deviation": 0.5, "learning_rate": 0.3}
SHARED = ["gmf_items", "head", "head_bias"]


def trained_plainly(config, data, before, clients, number):
    """By participant: its parameters and its number of rows."""
    rows = draw_rows(data, clients.numpy(), 4, Stream.of(SEED, "negatives", number), torch.float64, whole=True)
    held = {int(c): {name: before[f"server.{name}"].clone() for name in SHARED} for c in rows.clients}
    for client, params in held.items():
        params["gmf_user"] = before["server.gmf_user"][client].clone()
    for epoch in range(config.local_epochs):
        for index, labels, weights in rows.batches(config.batch_size, epoch, Stream.of(SEED, "shuffle", number)):
            for place in range(len(index)):
                client, real = int(rows.clients[place]), weights[place] > 0
                params = {name: value.requires_grad_() for name, value in held[client].items()}
                table = params["gmf_items"][index[place][real]]
                logits = table @ (params["gmf_user"] * params["head"]) + params["head_bias"]
                loss = binary_cross_entropy_with_logits(logits, labels[place][real])
                slopes = torch.autograd.grad(loss, list(params.values()))
                held[client] = {
                    name: (value - config.learning_rate * slope).detach()
                    for (name, value), slope in zip(params.items(), slopes, strict=True)
                }
    return held, {int(c): int(n) for c, n in zip(rows.clients, rows.lengths, strict=True)}


def aggregated(held, samples, before, groups, gamma):
    """ActvAGG, step by step; `groups` are those of everybody after the participants' vectors have come back."""
    after = {}
    for name in ("head", "head_bias"):
        after[name] = sum(samples[k] * held[k][name] for k in held) / sum(samples.values())
    old = before["server.gmf_items"]
    table = old.clone()
    for item in range(tiny.ITEMS):
        moved = {k: (held[k]["gmf_items"][item] - old[item]).abs().sum() for k in held}
        if sum(moved.values()) > 0:
            table[item] = sum(moved[k] * held[k]["gmf_items"][item] for k in held) / sum(moved.values())
    after["gmf_items"] = table
    users = before["server.gmf_user"].clone()
    for k in held:
        users[k] = held[k]["gmf_user"]
    for client in set(range(tiny.USERS)) - set(held):
        alike = [k for k in held if groups[k] == groups[client]]
        if alike:
            move = sum(held[k]["gmf_user"] - before["server.gmf_user"][k] for k in alike) / len(alike)
            users[client] += gamma * move
    return {**after, "gmf_user": users}


class FedFastConformance(PeopleConformance):
    method = "fedfast"
    exchanges = 2  # training, and the participants' vectors

    def test_two_rounds_equal_the_loops(self, monkeypatch) -> None:
        config = self.terms().config
        trainer = self.federation(chunk=5)
        strategy = trainer.server.strategy
        found, seen = strategy._grouped, {}
        monkeypatch.setattr(strategy, "_grouped", lambda when, n: seen.setdefault((when, n), found(when, n)))
        for number in (1, 2):
            before = {name: value.clone() for name, value in whole_state(trainer).items()}
            clients = trainer.server.participants(number)
            held, samples = trained_plainly(config, self.people(trainer).data, before, clients, number)
            done = trainer.round(number)
            expected = aggregated(held, samples, before, seen["after", number], config.shrink**number)
            after = whole_state(trainer)
            assert_equal_states({name: after[f"server.{name}"] for name in expected}, expected, tolerance=1e-9)
            assert done.notes["followers"] <= tiny.USERS - len(clients)
            assert torch.equal(after["server.group_of"], seen["before", number])

    def test_the_server_has_vectors_of_all_and_they_differ_from_the_start(self) -> None:
        vectors = self.federation().server.strategy.state()["gmf_user"]
        assert len(torch.unique(vectors, dim=0)) == tiny.USERS


class TestFedFast(FedFastConformance):
    options = {**SMALL, "fraction": 0.3}


class TestEverybody(FedFastConformance):
    options = {**SMALL, "fraction": 1.0, "local_epochs": 2}


@pytest.mark.parametrize(("fraction", "fewest", "expected"), [(0.3, 1, [2, 1]), (0.5, 1, [3, 2]), (0.1, 9, [7, 2])])
def test_participants_come_evenly_from_all_groups(fraction, fewest, expected):
    """And from others, where one has too few."""
    ids, groups = np.arange(10) * 7, np.array([0, 2, 0, 0, 0, 2, 0, 0, 0, 0])
    chosen = FromEveryGroup(fraction, fewest).participants(ids, 0, 1, groups)
    assert [int((groups[chosen] == group).sum()) for group in (0, 2)] == expected
    assert (np.diff(chosen) > 0).all()
    again = FromEveryGroup(fraction, fewest).participants(ids, 0, 2, groups)
    assert len(again) == len(chosen) and chosen.tolist() != again.tolist()


def test_without_groups_nobody_is_chosen_by_them():
    with pytest.raises(ValueError, match="there are none"):
        FromEveryGroup(0.5).participants(np.arange(4), 0, 1)


def test_vectors_may_begin_alike():
    vectors = TestFedFast().federation(options={"common_start": True}).server.strategy.state()["gmf_user"]
    assert len(torch.unique(vectors, dim=0)) == 1 and len(vectors) == tiny.USERS
