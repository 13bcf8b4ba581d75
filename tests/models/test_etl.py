from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from confed.data.domain_split import DomainSplit, split_domains
from confed.data.matching import match
from confed.data.split import TrainingData
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.etl import ETL
from confed.models.binary_rows import dropout_factors
from confed.models.two_domains import persons
from confed.protocol import COLD, WARM
from confed.ragged import Ragged
from confed.random import keyed
from confed.testing import assert_equal_states

SMALL = {"dim": 4, "batch_size": 5, "learning_rate": 0.01, "init_deviation": 0.3}
TINY = WARM.model_copy(update={"negatives": 15, "more_negatives": (), "cutoffs": (5, 10), "population": "all"})


@cache
def data(domains=2, overlap=0.5):
    return synthetic_domains(
        domains=domains, users=24, items=60, interactions_per_user=10, groups=3, categories=5, overlap=overlap, seed=3
    )


@cache
def cut(domains=2):
    return split_domains(data(domains), TINY, 0)


def fresh(of=None, seed=5, **options):
    method = ETL()
    return method.model(method.config("tiny", {**SMALL, **options}), of or cut(), seed, "float64")


def trained(rounds=2, of=None, **options):
    made = fresh(of, **options)
    for number in range(1, rounds + 1):
        made.train(number)
    return made


def scores_of(model, name):
    return model.scorer_of(name)(torch.arange(len(model.persons[name])))


def without_interactions(of, domain, users):
    """The same split, but some users have nothing to train on in a domain."""
    part = of.parts[domain]
    rows = Ragged.of([[] if user in users else part.training.positives[user] for user in range(part.users)])
    training = TrainingData(part.items, rows, rows.unique())
    changed = replace(part, training=training)
    return DomainSplit({**of.parts, domain: changed}, of.matching)


def without_matches(of):
    """The same split, but nobody is known to both domains."""
    return DomainSplit(
        of.parts, match({name: [f"{name} {user}" for user in part.user_ids] for name, part in of.parts.items()})
    )


def draws(purpose):
    return keyed(5, purpose, 1, 0)


class Plain:
    """The formulas, one person after another, on dense rows and without dropout."""

    def __init__(self, ours):
        self.p = {**ours.params, **{f"judge/{name}": value for name, value in ours.judges.items()}}
        self.x, self.y = ours.names
        self.rows = {name: self._dense(ours, name) for name in ours.names}

    @staticmethod
    def _dense(ours, name):
        table = torch.zeros(ours.people, ours.items[name], dtype=torch.float64)
        for person in range(ours.people):
            table[person, ours.rows[name][person]] = 1.0
        return table

    def feature(self, name, person):
        hidden = torch.relu(self.rows[name][person] @ self.p[f"{name}.input"] + self.p[f"{name}.input_bias"])
        return self.p[f"{name}.feature"] @ hidden + self.p[f"{name}.feature_bias"] + self.p["people"][person]

    def rebuilt(self, name, latent, person):
        logits = self.p[f"{name}.output"] @ latent + self.p[f"{name}.output_bias"]
        return functional.binary_cross_entropy_with_logits(logits, self.rows[name][person], reduction="sum")

    def judged(self, name, feature, label):
        hidden = torch.relu(self.p[f"judge/{name}.judge"] @ feature + self.p[f"judge/{name}.judge_bias"])
        logit = self.p[f"judge/{name}.verdict"] @ hidden + self.p[f"judge/{name}.verdict_bias"]
        return functional.binary_cross_entropy_with_logits(logit, torch.full_like(logit, label))

    def model_loss(self, people, weight):
        w = self.p["map"]
        total = torch.zeros((), dtype=torch.float64)
        for u in people.tolist():
            knows = {name: bool(self.rows[name][u].any()) for name in (self.x, self.y)}
            for name, other, there, back in ((self.x, self.y, w, w.T), (self.y, self.x, w.T, w)):
                if not knows[name]:
                    continue
                feature = self.feature(name, u)
                z = torch.relu(feature)
                total = total + self.rebuilt(name, z, u) + self.judged(name, feature, 1.0)
                total = total + weight * (z - z @ there @ back).abs().sum()
                if knows[other]:
                    total = total + self.rebuilt(other, z @ there, u)
        return total

    def judges_loss(self, people, prior):
        total = torch.zeros((), dtype=torch.float64)
        for u, drawn in zip(people.tolist(), prior, strict=True):
            for name in (self.x, self.y):
                if self.rows[name][u].any():
                    total = (
                        total + self.judged(name, drawn, 1.0) + self.judged(name, self.feature(name, u).detach(), 0.0)
                    )
        return total


def gradients(loss, params):
    return torch.autograd.grad(
        loss, list(params.values()), retain_graph=True, allow_unused=True, materialize_grads=True
    )


@pytest.mark.parametrize("weight", [0.0, 1.0, 5.0])
def test_the_model_is_trained_on_the_formulas(weight):
    ours = fresh(without_interactions(cut(), "b", {1, 4}), dropout=0.0, orthogonality=weight)
    plain, everybody = Plain(ours), torch.arange(ours.people)
    assert 0 < int((ours.known["a"] & ours.known["b"]).sum()) < ours.people
    mine, theirs = ours.model_loss(everybody, draws), plain.model_loss(everybody, weight)
    torch.testing.assert_close(mine, theirs)
    for one, other in zip(gradients(mine, ours.params), gradients(theirs, ours.params), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_the_discriminators_are_trained_on_the_formulas():
    ours = fresh(dropout=0.0)
    people = torch.tensor([7, 0, 20, 13, 2])
    prior = torch.randn(5, 4, generator=draws("prior"), dtype=torch.float64)
    mine, theirs = ours.judges_loss(people, draws), Plain(ours).judges_loss(people, prior)
    torch.testing.assert_close(mine, theirs)
    for one, other in zip(gradients(mine, ours.judges), gradients(theirs, ours.judges), strict=True):
        torch.testing.assert_close(one, other)
    assert not any(gradient.any() for gradient in gradients(ours.judges_loss(people, draws), ours.params))


def test_dropout_strikes_out_ones_of_rows_and_hidden_values_of_judges():
    ours = fresh(dropout=0.5)
    plain, people = Plain(ours), torch.tensor([3, 1])
    known = people[ours.known["a"][people]]
    counts = [len(ours.rows["a"][int(person)]) for person in known]
    factors = dropout_factors((sum(counts),), 0.5, keyed("some"), torch.float64)
    for person, some in zip(known.tolist(), factors.split(counts), strict=True):
        plain.rows["a"][person][ours.rows["a"][person]] = some
    expected = torch.stack([plain.feature("a", person) for person in known.tolist()])
    torch.testing.assert_close(ours.features("a", known, keyed("some")), expected)
    hidden = torch.relu(functional.linear(expected, ours.judges["a.judge"], ours.judges["a.judge_bias"]))
    struck = hidden * dropout_factors(tuple(hidden.shape), 0.5, keyed("other"), torch.float64)
    verdict = functional.linear(struck, ours.judges["a.verdict"], ours.judges["a.verdict_bias"])[:, 0]
    torch.testing.assert_close(ours.judge("a", expected, keyed("other")), verdict)


def test_people_are_matched():
    found = persons(cut())
    ids = {}
    for name, part in cut().parts.items():
        for user, person in zip(part.user_ids, found[name].tolist(), strict=True):
            assert ids.setdefault(person, user) == user
    assert len(ids) == len(set(ids.values())) == fresh().people == cut().users
    assert sorted(ids) == list(range(len(ids)))


@pytest.mark.parametrize("domain", ["a", "b"])
def test_a_domain_learns_nothing_from_people_it_does_not_know(domain):
    """Somebody without interactions is no row of dislikes: neither domain's view of him is trained there."""
    ours = fresh(without_interactions(cut(), "b", {0, 1, 2}), dim=32)
    strangers = torch.nonzero(~ours.known[domain])[:, 0]
    found = dict(zip(ours.params, gradients(ours.model_loss(strangers, draws), ours.params), strict=True))
    for name, gradient in found.items():
        assert bool(gradient.any()) != name.startswith(f"{domain}."), name
    somewhere = (ours.known["a"] | ours.known["b"])[strangers]
    assert somewhere.any()
    assert torch.equal(found["people"][strangers].any(dim=1), somewhere)


def test_nobody_in_common_in_a_batch():
    ours = fresh()
    alone = torch.nonzero(ours.known["a"] ^ ours.known["b"])[:, 0]
    only_a = torch.nonzero(~ours.known["b"])[:, 0]
    for people in (alone, only_a):
        torch.testing.assert_close(
            fresh(dropout=0.0).model_loss(people, draws), Plain(fresh(dropout=0.0)).model_loss(people, 1.0)
        )


def test_an_orthogonal_map_leads_there_and_back():
    ours = fresh(dropout=0.0)
    with torch.no_grad():
        ours.params["map"].copy_(torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=keyed("q")))[0])
    everybody = torch.arange(ours.people)
    heavy = fresh(dropout=0.0, orthogonality=1e3)
    heavy.load(ours.state())
    torch.testing.assert_close(heavy.model_loss(everybody, draws), ours.model_loss(everybody, draws))


def test_every_third_batch_trains_the_discriminators_and_them_alone():
    """24 people in batches of 12: batches 3 and 6, counted through three epochs."""
    ours = fresh(batch_size=12)
    who = []

    def spied(kind, train, still, others):
        def spy(people, draw):
            before = {name: value.detach().clone() for name, value in still().items()}
            own = {name: value.detach().clone() for name, value in others().items()}
            loss = train(people, draw)
            assert all(torch.equal(before[name], value) for name, value in still().items())
            assert any(not torch.equal(own[name], value) for name, value in others().items())
            who.append(kind)
            return loss

        return spy

    ours._train_model = spied("model", ours._train_model, lambda: ours.judges, lambda: ours.params)
    ours._train_judges = spied("judges", ours._train_judges, lambda: ours.params, lambda: ours.judges)
    for number in (1, 2, 3):
        ours.train(number)
    assert who == ["model", "model", "judges", "model", "model", "judges"]


def test_steps_are_those_of_adam_and_sgd_with_decay_in_the_gradient():
    ours, people = fresh(weight_decay=0.1), torch.arange(8)
    copies = [value.detach().clone().requires_grad_() for value in ours.params.values()]
    adam = torch.optim.Adam(copies, lr=0.01, weight_decay=0.1, foreach=False)
    for copy, gradient in zip(copies, gradients(ours.model_loss(people, draws), ours.params), strict=True):
        copy.grad = gradient
    adam.step()
    ours._train_model(people, draws)
    for copy, value in zip(copies, ours.params.values(), strict=True):
        torch.testing.assert_close(value, copy)
    slopes = gradients(ours.judges_loss(people, draws), ours.judges)
    before = [value.detach().clone() for value in ours.judges.values()]
    ours._train_judges(people, draws)
    for value, old, slope in zip(ours.judges.values(), before, slopes, strict=True):
        torch.testing.assert_close(value.detach(), old - 0.01 * (slope + 0.1 * old))


def test_an_epoch_of_discriminators_alone_has_no_loss_of_the_model():
    ours = fresh(batch_size=100)
    losses = [ours.train(number) for number in (1, 2, 3, 4)]
    assert [loss is None for loss in losses] == [False, False, True, False]


def test_the_loss_is_the_mean_over_the_people_the_model_was_trained_on():
    ours, same = fresh(batch_size=100), fresh(batch_size=100)
    order = torch.randperm(ours.people, generator=keyed(5, "shuffle", 1))
    expected = float(same.model_loss(order, draws).detach()) / ours.people
    assert ours.train(1) == pytest.approx(expected)


def test_same_seed_same_result_and_another_seed_another():
    first, again, other = trained().state(), trained().state(), trained(seed=6).state()
    assert_equal_states(first, again, tolerance=0)
    assert not torch.equal(first["model/param.a.output"], other["model/param.a.output"])
    assert not torch.equal(first["discriminators/b.judge"], other["discriminators/b.judge"])


@pytest.mark.parametrize("batch_size", [5, 100])
def test_state_survives_a_file_and_resumes_exactly(tmp_path, batch_size):
    ours = trained(2, batch_size=batch_size)
    state = ours.state()
    assert {name.split("/")[0] for name in state} == {"model", "discriminators"}
    save_file({name: tensor.clone().contiguous() for name, tensor in state.items()}, tmp_path / "state")
    resumed = fresh(batch_size=batch_size)
    resumed.load(load_file(tmp_path / "state"))
    for number in (3, 4):
        assert ours.train(number) == resumed.train(number)
        assert all(torch.equal(scores_of(ours, name), scores_of(resumed, name)) for name in ours.names)
    assert_equal_states(ours.state(), resumed.state(), tolerance=0)


def test_scores_are_those_of_the_domain_s_own_decoder():
    ours = trained(1)
    plain = Plain(ours)
    for name in ours.names:
        scores = scores_of(ours, name)
        for user, person in enumerate(ours.persons[name].tolist()):
            latent = torch.relu(plain.feature(name, person))
            expected = ours.params[f"{name}.output"] @ latent + ours.params[f"{name}.output_bias"]
            torch.testing.assert_close(scores[user], expected.detach())


def test_serving_takes_the_model_without_its_discriminators():
    ours = trained(2)
    scores = {name: scores_of(ours, name) for name in ours.names}
    state = ours.serving_state()
    ours.train(3)
    assert all(name.startswith("model/param.") for name in state)
    served = fresh()
    served.load_serving(state)
    for name, expected in scores.items():
        found = served.scorer_of(name)(torch.tensor([3, 0]))
        torch.testing.assert_close(found, expected[[3, 0]])
        assert not found.requires_grad


def test_cold_users_are_scored_across():
    """Dec_x(z_y Wᵀ) and Dec_y(z_x W)."""
    of = split_domains(data(overlap=1.0), COLD, 0)
    served = fresh(of)
    served.load_serving(trained(of=of).serving_state())
    plain, params = Plain(served), served.params
    for name, other in zip(served.names, reversed(served.names), strict=True):
        cold = np.flatnonzero(of.parts[name].training.positives.lengths == 0)
        assert len(cold)
        scores = served.scorer_of(name)(torch.from_numpy(cold))
        for place, user in enumerate(cold.tolist()):
            latent = torch.relu(plain.feature(other, int(served.persons[name][user])))
            there = latent @ (params["map"].T if name == served.names[0] else params["map"])
            expected = params[f"{name}.output"] @ there + params[f"{name}.output_bias"]
            torch.testing.assert_close(scores[place], expected.detach())


def test_identical_people_stay_finite():
    of = cut()
    parts = {}
    for name, part in of.parts.items():
        rows = Ragged.of([[0, 1]] * part.users)
        training = TrainingData(part.items, rows, rows)
        parts[name] = replace(part, training=training)
    ours = trained(of=DomainSplit(parts, of.matching))
    assert all(bool(tensor.isfinite().all()) for tensor in ours.state().values())


def test_a_single_hidden_value():
    assert trained(1, dim=1).judges["a.judge"].shape == (1, 1)


def test_the_loss_falls():
    ours = fresh(batch_size=8)
    losses = [ours.train(number) for number in range(1, 31)]
    assert losses[-1] < 0.8 * losses[0]


def test_three_domains_are_refused():
    with pytest.raises(ConfedError, match=r"etl is for two domains, this data has 3 \(a, b, c\).*etl-f"):
        fresh(cut(3))
