from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional

from confed.data.domain_split import split_domains
from confed.methods.pricdr import PriCDR
from confed.protocol import COLD
from confed.random import keyed
from tests.models.test_etl import cut, data, gradients, without_interactions, without_matches

SMALL = {"dim": 4, "batch_size": 7, "learning_rate": 0.01, "projected": 6, "column_epsilon": 100.0, "dropout": 0.0}


def fresh(of=None, seed=5, **options):
    method = PriCDR()
    return method.model(method.config("tiny", {**SMALL, **options}), of or cut(), seed, "float64")


@cache
def cold_cut():
    return split_domains(data(overlap=1.0), COLD, 0)


def dense(ours, name):
    table = torch.zeros(ours.data[name].users, ours.data[name].items, dtype=torch.float64)
    for user in range(len(table)):
        table[user, ours.rows[name][user]] = 1.0
    return table


def tower(ours, name, row):
    p = ours.params
    hidden = row @ p[f"{name}.input"] + p[f"{name}.input_bias"]
    return p[f"{name}.output"] @ hidden + p[f"{name}.output_bias"]


def code(ours, name, row):
    p = ours.params
    hidden = torch.relu(p[f"{name}.encoder"] @ row + p[f"{name}.encoder_bias"])
    return p[f"{name}.code"] @ hidden + p[f"{name}.code_bias"]


def scores(ours, name, user):
    """Of one user vector and every item, by the formula."""
    columns = [tower(ours, f"{name}.items", column) for column in dense(ours, name).T]
    return torch.stack([(user @ item) / (user.norm() * item.norm()) for item in columns])


def plain(ours, name, users):
    """The three terms, one user after another."""
    p, rows = ours.params, dense(ours, name)
    shared = ours.shared[name].tolist()
    rating = released = aligned = torch.zeros((), dtype=torch.float64)
    for user in users.tolist():
        known = bool(rows[user].any())
        own = tower(ours, f"{name}.users", rows[user])
        if known:
            logits = scores(ours, name, own)
            rating = rating + functional.binary_cross_entropy_with_logits(logits, rows[user], reduction="sum")
        if user in shared:
            row = ours.release[name][shared.index(user)]
            of = code(ours, name, row)
            hidden = torch.relu(p[f"{name}.decoder"] @ torch.relu(of) + p[f"{name}.decoder_bias"])
            back = p[f"{name}.decoded"] @ hidden + p[f"{name}.decoded_bias"]
            released = released + (back - row).square().sum()
            if known:
                aligned = aligned + (of - own).square().sum()
    return rating, released + ours.config.alignment * aligned.sqrt()


def test_the_losses_are_those_of_the_formula():
    of = without_interactions(cut(), "b", {0, 2, 4})
    ours = fresh(of, alignment=3.0)
    for name in ours.names:
        users = torch.arange(ours.data[name].users)
        expected = plain(ours, name, users)
        found = ours.losses(name, users, None)
        torch.testing.assert_close(found[0], expected[0])
        torch.testing.assert_close(found[1], expected[1])
        for one, other in zip(gradients(sum(found), ours.params), gradients(sum(expected), ours.params), strict=True):
            torch.testing.assert_close(one, other)


def test_an_epoch_is_steps_of_adam_over_both_domains():
    ours, same = (fresh(batch_size=1000, weight_decay=0.01) for _ in range(2))
    adam = torch.optim.Adam(list(same.params.values()), lr=0.01, weight_decay=0.01, foreach=False)
    total = 0.0
    for name in same.names:
        rating, others = plain(same, name, torch.arange(same.data[name].users))
        adam.zero_grad()
        # Autograd leaves out who takes no part, and Adam's moments count on: a gradient of 0 is what the others have.
        for value, gradient in zip(same.params.values(), gradients(rating + others, same.params), strict=True):
            value.grad = gradient if gradient.abs().any() else None
        adam.step()
        total += float(rating.detach())
    assert ours.train(1) == pytest.approx(total / sum(of.users for of in same.data.values()))
    for name, value in ours.params.items():
        torch.testing.assert_close(value, same.params[name], rtol=1e-7, atol=1e-9)


def test_a_release_is_centred_and_has_the_people_both_have():
    """Its products are those of the centred rows, as far as a projection keeps them, and the noise."""
    ours = fresh(projected=4000)
    for name, source in (("a", "b"), ("b", "a")):
        table = dense(ours, source)[ours.shared[source]]
        centred = table - table.mean(dim=0)
        found = ours.release[name] @ ours.release[name].T
        noise = ours.config.projection(len(table)).noise
        assert noise < 1
        expected = centred @ centred.T + noise**2 * torch.eye(len(table), dtype=torch.float64)
        torch.testing.assert_close(found, expected, rtol=0.1, atol=0.6)


def test_a_release_does_not_depend_on_what_the_target_has():
    before = fresh().release["a"]
    assert torch.equal(fresh(without_interactions(cut(), "a", {0, 1})).release["a"], before)
    assert not torch.equal(fresh(without_interactions(cut(), "b", {0, 1})).release["a"], before)


def test_cold_users_are_scored_with_what_was_released_of_them():
    ours = fresh(cold_cut())
    ours.train(1)
    for name in ours.names:
        cold = np.flatnonzero(~ours.known[name].numpy())
        assert len(cold)
        found = ours.scorer_of(name)(torch.from_numpy(cold))
        shared = ours.shared[name].tolist()
        for place, user in enumerate(cold.tolist()):
            vector = code(ours, name, ours.release[name][shared.index(user)])
            torch.testing.assert_close(found[place], scores(ours, name, vector).detach())


def test_a_learned_scale_begins_with_one_and_moves():
    ours = fresh(scale="learned")
    users = torch.arange(3)
    torch.testing.assert_close(ours.scorer_of("a")(users), fresh().scorer_of("a")(users))
    ours.train(1)
    assert float(ours.params["a.scale"].detach()) != 1.0


def test_dropout_strikes_out_released_numbers():
    ours = fresh(dropout=0.5)
    rows = ours.release["a"][:3]
    assert not torch.equal(ours.encode("a", rows, keyed("d")), ours.encode("a", rows))


def test_nobody_in_common():
    ours = fresh(without_matches(cut()))
    assert not len(ours.release["a"])
    assert np.isfinite(ours.train(1))


def test_the_loss_falls():
    ours = fresh(scale="learned")
    losses = [ours.train(number) for number in range(1, 21)]
    assert losses[-1] < 0.9 * losses[0]
