from functools import cache

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from confed.data.domain_split import split_domains
from confed.methods.cdrib import CDRIB
from confed.models.cdrib import SIDES, deviation, divergence_of
from confed.protocol import COLD
from confed.random import keyed
from tests.models.test_etl import cut, data, gradients, without_interactions, without_matches

SMALL = {"dim": 4, "batch_size": 20, "learning_rate": 0.01, "init_deviation": 0.5, "dropout": 0.0}


def fresh(of=None, seed=5, **options):
    method = CDRIB()
    return method.model(method.config("tiny", {**SMALL, **options}), of or cut(), seed, "float64")


@cache
def cold_cut():
    return split_domains(data(overlap=1.0), COLD, 0)


def matrices(ours, name):
    """(users, items) of means over a user's items, (items, users) of means over an item's users."""
    table = torch.zeros(ours.data[name].users, ours.data[name].items, dtype=torch.float64)
    for user in range(len(table)):
        table[user, ours.data[name].positives[user]] = 1.0
    return {
        side: of / of.sum(dim=1, keepdim=True).clamp_min(1) for side, of in zip(SIDES, (table, table.T), strict=True)
    }


def plain(ours, name):
    """Means, raw deviations and all layers of users and items, by dense matrices."""
    p, means = ours.params, matrices(ours, name)
    found = {}
    for side, other in (SIDES, SIDES[::-1]):
        nodes, layers = p[f"{name}.{side}"], []
        for layer in range(3):
            at = f"{name}.{side}.{layer}"
            there = functional.leaky_relu(means[other] @ nodes @ p[f"{at}.out"] + p[f"{at}.out_bias"], 0.1)
            heads = []
            for h in ("", "_raw") if layer == 2 else ("",):
                back = means[side] @ there @ p[f"{at}.back{h}"] + p[f"{at}.back{h}_bias"]
                both = torch.cat([functional.leaky_relu(back, 0.1), nodes], dim=1)
                heads.append(both @ p[f"{at}.union{h}"].T + p[f"{at}.union{h}_bias"])
            nodes = torch.relu(heads[0])
            layers.append(nodes)
        found[side] = torch.cat([*layers[:2], heads[0]], dim=1), heads
    return found


def test_vectors_are_those_of_dense_matrices():
    ours = fresh(without_interactions(cut(), "b", {0, 2}))
    for name in ours.names:
        vectors, divergence = ours.encode(name)
        expected = plain(ours, name)
        total = 0.0
        for side, weight in zip(SIDES, (1.5, 1.0), strict=True):
            wide, (mean, raw) = expected[side]
            torch.testing.assert_close(vectors[side], wide)
            total = total + weight * divergence_of(mean, deviation(raw))
        torch.testing.assert_close(divergence, total)
        loss, other = (
            sum(of[side].sin().sum() for side in SIDES) for of in (vectors, {s: expected[s][0] for s in SIDES})
        )
        for one, two in zip(gradients(loss, ours.params), gradients(other, ours.params), strict=True):
            torch.testing.assert_close(one, two)


def test_the_divergence_is_that_from_the_published_prior():
    mean, raw = (torch.randn(5, 3, generator=keyed(name), dtype=torch.float64) for name in "mr")
    spread = deviation(raw)
    assert float(spread.min()) > 1.105 and float(spread.max()) < 2.514
    prior = Normal(torch.zeros(3, dtype=torch.float64), deviation(torch.ones(3, dtype=torch.float64)))
    torch.testing.assert_close(
        divergence_of(mean, spread), kl_divergence(Normal(mean, spread), prior).sum(dim=1).mean()
    )


def test_people_known_to_both_explain_items_with_the_other_domain_s_vector():
    of = without_interactions(cut(), "b", {0, 2})
    ours = fresh(of)
    pairs = ours.known_to_both
    assert 0 < len(pairs) < len(ours.shared["a"])
    rows = {
        name: (
            torch.arange(ours.data[name].users),
            torch.zeros(ours.data[name].users).long(),
            torch.ones(ours.data[name].users).double(),
        )
        for name in ours.names
    }
    losses, _ = ours.losses(rows, None)
    vectors = {name: plain(ours, name) for name in ours.names}
    partner = {"a": dict(pairs.tolist()), "b": {b: a for a, b in pairs.tolist()}}
    for name, found in zip(ours.names, losses, strict=True):
        other = ours.other(name)
        for user in range(ours.data[name].users):
            there = partner[name].get(user)
            vector = vectors[name]["users"][0][user] if there is None else vectors[other]["users"][0][there]
            score = vector @ vectors[name]["items"][0][0]
            torch.testing.assert_close(found[user], functional.softplus(-score))


def test_vectors_of_people_are_told_apart():
    """Recomputed from the draws, one person after another."""
    ours = fresh()
    first, second = (torch.randn(9, 12, generator=keyed(name), dtype=torch.float64) for name in "xy")
    draws = keyed("c")
    some = torch.randperm(9, generator=draws)[:64]
    step = torch.randint(1, 9, (9,), generator=draws)
    p, total = ours.params, 0.0

    def judged(x, y):
        hidden = torch.cat([x, y])
        for layer in ("judge.0", "judge.1"):
            hidden = torch.relu(p[layer] @ hidden + p[f"{layer}_bias"])
        return torch.sigmoid(p["judge.2"] @ hidden + p["judge.2_bias"])[0]

    for person, away in zip(some.tolist(), step.tolist(), strict=True):
        other = (person + away) % 9
        assert other != person
        own = judged(first[person], second[person])
        for mixed in (judged(first[person], second[other]), judged(first[other], second[person])):
            total = total + torch.relu(0.3 - own + mixed) / 9
    torch.testing.assert_close(ours.contrast(first, second, keyed("c")), total)
    assert float(ours.contrast(first[:1], second[:1], keyed("c"))) == 0.0


def test_training_draws_and_scoring_does_not():
    ours = fresh(dropout=0.3)
    one, other = (ours.encode("a", keyed("d", k))[0]["users"] for k in range(2))
    assert not torch.equal(one, other)
    torch.testing.assert_close(ours.encode("a")[0]["users"], fresh().encode("a")[0]["users"])


@pytest.mark.parametrize("negatives", [1, 3])
def test_a_step_is_one_of_adam_over_all_terms(negatives):
    """The mean over positives, the mean over each of their negatives, and what is beside the rows."""
    ours, same = (fresh(batch_size=100_000, train_negatives=negatives, weight_decay=0.01) for _ in range(2))
    rows = {name: same.labelled(name, negatives, 1) for name in same.names}
    losses, loss = same.losses(rows, keyed(5, "step", 1, 0))
    for (_, _, labels), found in zip(rows.values(), losses, strict=True):
        loss = loss + found[labels == 1].mean() + negatives * found[labels == 0].mean()
    adam = torch.optim.Adam(list(same.params.values()), lr=0.01, weight_decay=0.01, foreach=False)
    loss.backward()
    adam.step()
    assert ours.train(1) == pytest.approx(float(torch.cat(losses).detach().mean()))
    for name, value in ours.params.items():
        torch.testing.assert_close(value, same.params[name], rtol=1e-6, atol=1e-8)


def test_beside_the_rows_are_both_divergences_and_the_contrast():
    """Recomputed from the same draws."""
    ours = fresh()
    _, others = ours.losses({name: ours.labelled(name, 1, 1) for name in ours.names}, keyed("l"))
    draws = keyed("l")
    encoded = [ours.encode(name, draws) for name in ours.names]
    pairs = ours.known_to_both
    (first, a), (second, b) = encoded
    contrast = ours.contrast(first["users"][pairs[:, 0]], second["users"][pairs[:, 1]], draws)
    torch.testing.assert_close(others, a + b + contrast)
    assert float(contrast.detach()) > 0


@pytest.mark.parametrize("known_by", ["other", "both"])
def test_scores(known_by):
    ours = fresh(cold_cut(), known_by=known_by)
    ours.train(1)
    vectors = {name: plain(ours, name) for name in ours.names}
    for name in ours.names:
        other = ours.other(name)
        there = dict(zip(ours.shared[name].tolist(), ours.shared[other].tolist(), strict=True))
        found = ours.scorer_of(name)(torch.arange(ours.data[name].users))
        assert (~ours.known[name]).any()
        for user in range(ours.data[name].users):
            own, others = vectors[name]["users"][0][user], vectors[other]["users"][0][there[user]]
            if not ours.known[other][there[user]]:
                vector = own
            elif ours.known[name][user] and known_by == "both":
                vector = (own + others) / 2
            else:
                vector = others
            torch.testing.assert_close(found[user], (vectors[name]["items"][0] @ vector).detach())


def test_nobody_in_common():
    ours = fresh(without_matches(cut()))
    assert np.isfinite(ours.train(1))


def test_the_loss_falls():
    ours = fresh(bottleneck=0.01)
    losses = [ours.train(number) for number in range(1, 31)]
    assert np.mean(losses[-5:]) < 0.97 * np.mean(losses[:5])
