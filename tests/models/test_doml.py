from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional

from confed.data.domain_split import split_domains
from confed.data.synthetic_domains import synthetic_domains
from confed.methods.doml import DOML
from confed.models.two_domains import persons
from confed.protocol import COLD, WARM
from confed.random import keyed
from tests.models.test_etl import gradients, without_interactions

SMALL = {"dim": 4, "batch_size": 50, "learning_rate": 0.01, "init_deviation": 0.3, "dropout": 0.0}
TINY = WARM.model_copy(update={"negatives": 15, "more_negatives": (), "cutoffs": (5, 10), "population": "all"})


@cache
def data(overlap=0.5):
    return synthetic_domains(
        domains=2, users=24, items=60, interactions_per_user=10, groups=3, categories=5, overlap=overlap, seed=3
    )


@cache
def cut():
    return split_domains(data(), TINY, 0)


def fresh(of=None, seed=5, **options):
    method = DOML()
    return method.model(method.config("tiny", {**SMALL, **options}), of or cut(), seed, "float64")


def network(ours, name, user, item):
    """One pair, by the formula."""
    p = ours.params
    hidden = torch.relu(p[f"{name}.first"] @ torch.cat([user, item]) + p[f"{name}.first_bias"])
    hidden = torch.relu(p[f"{name}.second"] @ hidden + p[f"{name}.second_bias"])
    return (p[f"{name}.output"] @ hidden + p[f"{name}.output_bias"])[0]


def mapped(ours, name, user):
    return ours.params[f"{name}.map"] @ user + ours.params[f"{name}.map_bias"]


def score(ours, name, user, item, share):
    other = "b" if name == "a" else "a"
    return (1 - share) * network(ours, name, user, item) + share * network(ours, other, mapped(ours, name, user), item)


def pairs_by_id(of):
    """The users of everybody who is trained on in both domains, found by their ids."""
    first, second = of.parts["a"], of.parts["b"]
    places = {user: place for place, user in enumerate(second.user_ids)}
    return {
        (place, places[user])
        for place, user in enumerate(first.user_ids)
        if user in places and len(first.training.positives[place]) and len(second.training.positives[places[user]])
    }


@pytest.mark.parametrize("share", [0.0, 0.03, 1.0])
def test_scores_are_a_blend_of_both_networks(share):
    ours = fresh(transfer=share)
    for name in ours.names:
        users, items = ours.params[f"{name}.users"], ours.params[f"{name}.items"]
        expected = torch.stack([score(ours, name, user, item, share) for user in users[:3] for item in items])
        found = ours.scorer_of(name)(torch.arange(3))
        torch.testing.assert_close(found, expected.detach().view(3, -1))
        assert not found.requires_grad


def test_a_step_is_adam_s_on_the_formula():
    """One step an epoch, so that the whole loss is that of one epoch's rows and of all people."""
    of = without_interactions(cut(), "b", {0, 2, 4})
    ours, same = fresh(of, batch_size=100_000, orthogonality=0.1), fresh(of, batch_size=100_000, orthogonality=0.1)
    for model in (ours, same):  # of orthogonal maps the last term has no slope
        with torch.no_grad():
            model.params["a.map"].add_(0.2)
            model.params["b.map"].add_(0.1)
    p, pairs = same.params, pairs_by_id(of)
    assert 0 < len(pairs) < len(same.shared["a"])
    loss = torch.zeros((), dtype=torch.float64)
    total, count = 0.0, 0
    for name in same.names:
        users, items, labels = same.labelled(name, 4, 1)
        rows = zip(users.tolist(), items.tolist(), strict=True)
        logits = torch.stack([score(same, name, p[f"{name}.users"][u], p[f"{name}.items"][i], 0.03) for u, i in rows])
        losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        loss, total, count = loss + losses.mean(), total + float(losses.detach().sum()), count + len(labels)
    for a, b in pairs:
        there = mapped(same, "a", p["a.users"][a]) - p["b.users"][b]
        back = mapped(same, "b", p["b.users"][b]) - p["a.users"][a]
        loss = loss + (there @ there + back @ back) / len(pairs)
    for name in same.names:
        turned = p[f"{name}.map"]
        loss = loss + 0.1 * (turned @ turned.T - torch.eye(4, dtype=torch.float64)).abs().sum()
    adam = torch.optim.Adam(list(p.values()), lr=0.01, foreach=False)
    for value, gradient in zip(p.values(), gradients(loss, p), strict=True):
        value.grad = gradient
    adam.step()
    assert ours.train(1) == pytest.approx(total / count)
    for name, value in ours.params.items():
        torch.testing.assert_close(value, p[name], rtol=1e-8, atol=1e-10)


def test_maps_begin_orthogonal_and_leaving_that_costs():
    ours = fresh()
    assert float(ours.bent().detach()) == pytest.approx(0.0, abs=1e-12)
    with torch.no_grad():
        ours.params["a.map"].mul_(2.0)
    assert float(ours.bent().detach()) == pytest.approx(4 * 3.0)


def test_maps_are_learned():
    """Of people whose vectors in one domain are the other's, turned, the maps find how."""
    ours = fresh(learning_rate=0.05)
    pairs = ours.known_to_both
    before = float(ours.aligned(pairs).detach())
    for number in range(1, 40):
        ours.train(number)
    assert float(ours.aligned(pairs).detach()) < 0.3 * before


def test_dropout_strikes_out_hidden_values():
    users, items = (torch.randn(5, 4, generator=keyed(name), dtype=torch.float64) for name in "ui")
    ours = fresh(dropout=0.5)
    plain = ours.logits("a", users, items)
    assert not torch.equal(ours.logits("a", users, items, keyed("d")), plain)
    draws = [ours.logits("a", users, items, keyed("d", number)) for number in range(4000)]
    torch.testing.assert_close(torch.stack(draws).mean(dim=0), plain, rtol=0.1, atol=0.1)


def test_rows_and_people_are_shared_out_among_the_steps():
    ours, seen = fresh(), {"a": [], "b": [], "people": []}

    def spy(rows, pairs, draws):
        for name, (users, items, labels) in rows.items():
            seen[name] += zip(users.tolist(), items.tolist(), labels.tolist(), strict=True)
        seen["people"] += map(tuple, pairs.tolist())
        return 0.0

    ours._step = spy
    ours.train(1)
    for name in ours.names:
        assert sorted(seen[name]) == sorted(
            zip(*(column.tolist() for column in ours.labelled(name, 4, 1)), strict=True)
        )
    assert len(seen["people"]) == len(set(seen["people"]))
    assert set(seen["people"]) == pairs_by_id(cut())


def test_cold_users_are_scored_with_the_map_of_their_other_vector():
    of = split_domains(data(overlap=1.0), COLD, 0)
    ours = fresh(of)
    ours.train(1)
    number = persons(of)
    for name, other in (("a", "b"), ("b", "a")):
        part, vectors = of.parts[name], ours.vectors(name)
        cold = np.flatnonzero(part.training.positives.lengths == 0)
        assert len(cold)
        for user in range(part.users):
            expected = ours.params[f"{name}.users"][user]
            if user in cold:
                there = int(torch.nonzero(number[other] == number[name][user])[0, 0])
                assert len(of.parts[other].training.positives[there])
                expected = mapped(ours, other, ours.params[f"{other}.users"][there])
            torch.testing.assert_close(vectors[user], expected.detach())


def test_nobody_in_common():
    ours = fresh(without_interactions(cut(), "b", set(cut().matching.users["b"].tolist())))
    assert len(ours.known_to_both) == 0
    assert np.isfinite(ours.train(1))


def test_the_loss_falls():
    ours = fresh()
    losses = [ours.train(number) for number in range(1, 21)]
    assert losses[-1] < 0.8 * losses[0]
