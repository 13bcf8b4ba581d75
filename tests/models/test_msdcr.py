from functools import cache

import numpy as np
import torch
from torch.nn import functional

from confed.data.domain_split import split_domains
from confed.methods.msdcr import MSDCR
from confed.models.histories import History, paired
from confed.models.msdcr import ASPECTS
from confed.protocol import COLD
from tests.models.test_etl import cut, data, gradients, without_interactions, without_matches

SMALL = {"dim": 4, "batch_size": 20, "learning_rate": 0.01, "init_deviation": 0.5, "history": 3, "judging": 0.3}


def fresh(of=None, seed=5, **options):
    method = MSDCR()
    return method.model(method.config("tiny", {**SMALL, **options}), of or cut(), seed, "float64")


def triples(ours, name, number):
    return ours.triples(name, number, ours.shuffled(number))


@cache
def cold_cut():
    return split_domains(data(overlap=1.0), COLD, 0)


def aspects(ours, name, person, items):
    """All aspects of one history, by loops over aspects and items."""
    p = ours.params
    if not items:
        return torch.zeros(2 * ASPECTS, 4, dtype=torch.float64)
    vectors = p[f"{name}.items"][items]
    attended = []
    for one in vectors:
        logits = torch.stack([(one @ p[f"{name}.query"]) @ (v @ p[f"{name}.key"]) / 4.0 for v in vectors])
        mixed = sum(w * (v @ p[f"{name}.value"]) for w, v in zip(torch.softmax(logits, 0), vectors, strict=True))
        attended.append(functional.layer_norm(one + mixed, (4,), p[f"{name}.norm"], p[f"{name}.norm_bias"]))
    found = []
    for a in range(2 * ASPECTS):
        gated = []
        for h in attended:
            sigmoid, linear = (h @ p[f"{k}.item"][a] + person @ p[f"{k}.person"][a] for k in ("sigmoid", "linear"))
            gated.append(torch.sigmoid(sigmoid) * linear)
        weights = torch.softmax(torch.stack([g @ p["aspect"][a] for g in gated]), 0)
        found.append(sum(w * g for w, g in zip(weights, gated, strict=True)))
    return torch.stack(found)


def score(ours, name, own, other, item, *, empty):
    """Of one user, whose aspects in both domains these are, and one item."""
    p = ours.params
    parts = []
    for mine, theirs in zip(own[ASPECTS:], other[ASPECTS:], strict=True):
        gate = torch.sigmoid(
            p[f"{name}.gate"] @ torch.cat([mine - theirs, mine * theirs]) + p[f"{name}.gate_bias"],
        )
        enhanced = p[f"{name}.enhance"] @ torch.cat([gate * mine, mine]) + p[f"{name}.enhance_bias"]
        parts.append(torch.tanh(enhanced))
    parts += list((other if empty else own)[:ASPECTS])
    hidden = torch.cat([*parts, p[f"{name}.items"][item]])
    for layer in ("wide", "narrow"):
        hidden = torch.relu(p[f"{name}.{layer}"] @ hidden + p[f"{name}.{layer}_bias"])
    return (p[f"{name}.score"] @ hidden + p[f"{name}.score_bias"])[0]


def listed(history, row):
    return history.items[row][history.there[row]].tolist()


def verdict(ours, judge, aspects, name):
    p = ours.params
    hidden = functional.leaky_relu(p[f"{judge}.judge"] @ torch.cat(list(aspects)) + p[f"{judge}.judge_bias"])
    logit = (p[f"{judge}.verdict"] @ hidden + p[f"{judge}.verdict_bias"])[0]
    return functional.softplus(logit if name == "a" else -logit)


def test_the_losses_are_those_of_the_formula():
    ours = fresh(without_interactions(cut(), "b", {0, 2}))
    users, positives, negatives, *histories = (column[:12] for column in triples(ours, "a", 1))
    own, others = paired(histories)
    rating, judged = ours.losses("a", users, positives, negatives, (own, others))
    expected, verdicts = [], {("common", "a"): [], ("common", "b"): [], ("specific", "a"): [], ("specific", "b"): []}
    for row in range(12):
        person = ours.params["people"][ours.persons["a"][users[row]]]
        lists = listed(own, row), listed(others, row)
        mine, theirs = (aspects(ours, n, person, items) for n, items in zip("ab", lists, strict=True))
        better, worse = (
            score(ours, "a", mine, theirs, int(of[row]), empty=not lists[0]) for of in (positives, negatives)
        )
        expected.append(functional.softplus(worse - better))
        for name, found, items in zip("ab", (mine, theirs), lists, strict=True):
            for kind, of in (("common", found[:ASPECTS]), ("specific", found[ASPECTS:])) if items else ():
                verdicts[kind, name].append(verdict(ours, kind, of, name))
    torch.testing.assert_close(rating, torch.stack(expected))
    told = {key: 0.3 * torch.stack(of).mean() for key, of in verdicts.items()}
    torch.testing.assert_close(judged, sum(told.values()))
    helped = told["specific", "a"] + told["specific", "b"]
    misled = told["common", "a"] + told["common", "b"]
    for name, one, up, down in zip(
        ours.params,
        gradients(judged, ours.params),
        gradients(helped, ours.params),
        gradients(misled, ours.params),
        strict=True,
    ):
        # The judge of the common aspects learns to tell them apart; all that makes them learns the opposite.
        torch.testing.assert_close(one, up + (down if name.startswith("common.") else -down))


def test_no_row_has_its_own_positive_in_its_history():
    ours = fresh()
    for number in (1, 2):
        users, positives, _, items, there, *_ = triples(ours, "a", number)
        history = History(items, there)
        for row, positive in enumerate(positives.tolist()):
            seen = listed(history, row)
            own = set(ours.data["a"].positives[int(users[row])].tolist())
            assert positive in own and positive not in seen
            assert set(seen) <= own and len(set(seen)) == len(seen) == min(3, len(own) - 1)


def test_every_positive_has_a_row_and_every_epoch_other_histories():
    ours = fresh()
    data = ours.data["b"]
    one, other = triples(ours, "b", 1), triples(ours, "b", 2)
    pairs = sorted(zip(data.positives.row_of.tolist(), data.positives.values.tolist(), strict=True))
    for users, positives, *_ in (one, other):
        assert sorted(zip(users.tolist(), positives.tolist(), strict=True)) == pairs
    assert not torch.equal(one[3], other[3])


def test_scores_and_cold_users():
    ours = fresh(cold_cut())
    ours.train(1)
    for name in ours.names:
        found = ours.scorer_of(name)(torch.arange(ours.data[name].users))
        cold = torch.nonzero(~ours.known[name])[:, 0].tolist()
        assert cold
        histories = ours.shuffled(0)
        for user in [*cold[:2], 0]:
            there = int(ours.elsewhere[name][user])
            other = ours.other(name)
            lists = histories[name][user][:3].tolist(), histories[other][there][:3].tolist()
            person = ours.params["people"][ours.persons[name][user]]
            own, theirs = (aspects(ours, n, person, i) for n, i in zip((name, other), lists, strict=True))
            for item in (0, 7):
                expected = score(ours, name, own, theirs, item, empty=not lists[0])
                torch.testing.assert_close(found[user, item], expected.detach())


def test_a_step_moves_what_both_domains_have_in_common_once():
    """Both domains' losses are in one step of Adam."""
    ours, same = fresh(batch_size=100_000), fresh(batch_size=100_000)
    loss = torch.zeros((), dtype=torch.float64)
    for name in same.names:
        users, positives, negatives, *histories = triples(same, name, 1)
        rating, judged = same.losses(name, users, positives, negatives, paired(histories))
        loss = loss + rating.mean() + judged
    adam = torch.optim.Adam(list(same.params.values()), lr=0.01, weight_decay=0.001, foreach=False)
    loss.backward()
    adam.step()
    ours.train(1)
    for name, value in ours.params.items():
        torch.testing.assert_close(value, same.params[name], rtol=1e-7, atol=1e-9)


def test_nobody_in_common():
    ours = fresh(without_matches(cut()))
    assert np.isfinite(ours.train(1))


def test_the_loss_falls():
    ours = fresh()
    losses = [ours.train(number) for number in range(1, 31)]
    assert losses[-1] < 0.8 * losses[0]
