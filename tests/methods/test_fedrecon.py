from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.plain import PlainBiased, PlainFederation, PlainStep

import confed
from confed.clients.backbones import ParamSpec, Renewal
from confed.clients.cohort import Cohort
from confed.clients.sampling import draw_rows
from confed.data.interactions import ONLY
from confed.initial import zeros
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.ragged import Ragged
from confed.random import Stream
from confed.report.groups import users
from confed.testing import tiny
from tests.oracle import Oracle, OracleConformance

NAMES = {"items": "embedding.weight", "item_bias": "offset.weight", "mean": "mean", "user": "user", "user_bias": "bias"}
SMALL = {"batch_size": 16, "dim": 8, "init_bound": 0.5}


class FedReconConformance(OracleConformance):
    method = "fedrecon"
    served = "reconstructed"

    def oracle(self, config, items):
        model, rate = PlainBiased(items, config.dim), config.learning_rate
        own, shared = dict.fromkeys(("user", "bias"), rate), dict.fromkeys(("embedding", "offset", "mean"), rate)
        second = {**shared, **own} if config.jointly else shared
        return Oracle(
            PlainFederation(model, (PlainStep(own),), config.reconstruction_epochs, config.batch_size),
            names=NAMES,
            merge=dict.fromkeys(("items", "item_bias", "mean"), "weighted_mean"),
            then=(PlainFederation(model, (PlainStep(second),), config.local_epochs, config.batch_size),),
        )


class TestFedRecon(FedReconConformance):
    options = {**SMALL, "reconstruction_epochs": 2}


class TestJointly(FedReconConformance):
    options = {**SMALL, "jointly": True, "reinit_every": 2}


def trained(rounds, **options):
    method = method_named("fedrecon")
    trainer = method.trainer(Terms(method.config(None, {**SMALL, **options}), seed=1, dtype="float64"), tiny.cut(), {})
    for number in range(1, rounds + 1):
        trainer.round(number)
    return trainer


def test_a_client_keeps_nothing_unless_it_draws_anew_less_often():
    assert not [name for name in trained(1).state() if name.startswith("client.")]
    kept = {name for name in trained(1, reinit_every=2).state() if name.startswith("client.")}
    assert kept == {"client.user", "client.user_bias"}


def test_what_is_drawn_anew_is_every_clients_own_within_its_bounds():
    spec = ParamSpec("user", (3,), "user", "private", zeros, renewal=Renewal(2, 0.25))
    one, other = (spec.renewed(np.array(ids), 7, 1, torch.float64) for ids in ([4, 9, 2], [2]))
    assert torch.equal(one[2:], other) and len(torch.unique(one)) == 9 and float(one.abs().max()) <= 0.25
    assert not torch.equal(one, spec.renewed(np.array([4, 9, 2]), 7, 3, torch.float64))
    assert [spec.renewal.due(number) for number in (1, 2, 3, 4)] == [True, False, True, False]


def test_of_two_halves_no_row_is_in_both_and_each_is_in_one():
    rows = draw_rows(tiny.cut().training, np.arange(tiny.USERS), 4, Stream.of(0, "n"), torch.float64)
    numbered = replace(rows, local=torch.arange(rows.local.shape[1]).expand_as(rows.local).contiguous())
    halves = [numbered.part(name, Stream.of(0, "halves")) for name in ("support", "query")]
    for place, length in enumerate(rows.lengths.tolist()):
        seen = [half.local[place, : half.lengths[place]].tolist() for half in halves]
        assert sorted(seen[0] + seen[1]) == list(range(length))
        assert len(seen[0]) - len(seen[1]) in (0, 1)
        for half, slots in zip(halves, seen, strict=True):
            assert torch.equal(half.labels[place, : len(slots)], rows.labels[place, slots])


def test_what_is_shared_is_stepped_on_the_second_half():
    trainer = trained(0, split=True)
    people, download = trainer.federation.site.gateway, trainer.server.download()
    cohort = people.train_chunk(1, download, np.array([5]))
    assert cohort.samples.tolist() == [int(cohort.rows.lengths[0]) // 2]
    moved = (cohort.tables["items"][0] != download.tables["items"][0][cohort.rows.touched[0]]).any(dim=1)
    assert 0 < int(moved.sum()) <= int(cohort.samples[0]) < len(moved)


def test_between_two_draws_a_client_goes_on_with_what_it_has(monkeypatch):
    """And who is visited for the first time then has drawn before."""
    trainer = trained(0, reinit_every=2, fraction=0.5)
    people = trainer.federation.site.gateway
    assert len(torch.unique(people.store.tensors["user"], dim=0)) == tiny.USERS
    begun = {}

    def noting(cohort, procedure, stream, number, train=Cohort.train):
        begun[number] = {int(c): v.clone() for c, v in zip(cohort.clients, cohort.params["user"], strict=True)}
        return train(cohort, procedure, stream, number)

    monkeypatch.setattr(Cohort, "train", noting)
    for number in (1, 2, 3):
        before = people.store.tensors["user"].clone()
        trainer.round(number)
        goes_on = [torch.equal(vector, before[client]) for client, vector in begun[number].items()]
        assert goes_on and set(goes_on) == {number == 2}


def test_whoever_is_scored_reconstructs_first_with_what_is_shared_held_fixed():
    trainer = trained(2, serving_epochs=3)
    people, download = trainer.federation.site.gateway, trainer.server.download()
    cohort = people.reconstructed(download, np.arange(tiny.USERS))
    before = {name: tensor[0] for name, tensor in download.tables.items()}
    for client in (0, 7):
        place = cohort.clients.tolist().index(client)
        (touched,) = cohort.rows.touched[place : place + 1]
        real = touched < tiny.ITEMS
        assert torch.equal(cohort.tables["items"][place][real], before["items"][touched[real]])
        expected = before["items"] @ cohort.params["user"][place] + before["item_bias"][:, 0]
        expected = expected + cohort.params["user_bias"][place] + before["mean"]
        torch.testing.assert_close(cohort.scores()[place], expected)
    start = next(spec for spec in people.backbone.params if spec.name == "user")
    assert not torch.equal(cohort.params["user"], start.renewed(cohort.rows.ids, 1, 0, torch.float64))


def test_somebody_new_with_the_history_of_a_client_is_served_much_like_that_client():
    method, cut = method_named("fedrecon"), tiny.cut()
    terms = Terms(method.config(None, {**SMALL, "serving_epochs": 60}), seed=1, dtype="float64")
    trainer = trained(3, serving_epochs=60)
    state, positives = trainer.serving_state(), cut.training.positives
    known = method.scorer(terms, cut, state, 3, ONLY)(torch.arange(6))
    new = method.newcomers(terms, cut, state, 3, Ragged.of([positives[user] for user in range(6)]))
    alike = torch.corrcoef(torch.cat([known, new]))[:6, 6:]
    assert bool((alike.argmax(dim=1) == torch.arange(6)).float().mean() > 0.6)


def test_published_figures_are_those_of_the_published_configuration():
    method = method_named("fedrecon")
    shown = [{"reinit_every": 2}, {}, {"reinit_every": 2, "jointly": True}, {"reinit_every": 2, "split": True}]
    assert [method.published_as(method.config(None, o)) for o in shown] == ["fedrecon", None, None, None]


def test_items_are_alike_by_their_vectors_and_not_by_their_offsets():
    method, cut = method_named("fedrecon"), tiny.cut()
    terms = Terms(method.config(None, SMALL), seed=1, dtype="float64")
    state = trained(1).serving_state()
    assert torch.equal(method.item_vectors(terms, cut, state), state["server.items"])
    assert method.upload_parts(terms, cut).keys() == {"item tables", "other"}


def test_a_run_from_data_to_recommendations():
    options = {"dim": 4, "negatives": 15, "cutoffs": [5]}
    run = confed.run("fedrecon", tiny.interactions(), rounds=2, options=options)
    assert run.summary["view"] == "reconstructed" and list(run.summary["views"]) == ["reconstructed"]
    assert len(run.recommend("3", 4)) == 4
    assert users(run) is None, "all clients have the server's table: there is nothing to cluster"
    with pytest.raises(confed.ConfedError, match="'local' or 'reconstructed'"):
        confed.run("fedrecon", tiny.interactions(), rounds=1, options={**options, "view": "global"})


def test_the_servers_own_step():
    """From what it had, so many times as far as the mean of what the clients made of it."""
    before, once, thrice = (
        trained(rounds, **options).state() for rounds, options in ((0, {}), (1, {}), (1, {"server_rate": 3.0}))
    )
    for name in ("server.items", "server.item_bias", "server.mean"):
        torch.testing.assert_close(
            thrice[name] - before[name], 3.0 * (once[name] - before[name]), rtol=1e-9, atol=1e-12
        )
