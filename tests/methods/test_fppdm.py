import re
from functools import cache

import polars as pl
import pytest
import torch
from benchmarks.plain_silo import PlainFPPDM, joined, train

from confed.data.domain_split import split_domains
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.evaluation.domains import Examination
from confed.methods.fppdm import FPPDM, FPPDMPlus
from confed.models import graph_silo
from confed.models.compactness import CoClustering
from confed.models.distributions import unnamed
from confed.models.learner import batches_of
from confed.models.preference import Batch
from confed.protocol import COLD
from confed.random import Stream
from confed.runs.prepare import Experiment
from confed.runs.settings import resolve
from confed.testing import CompanyConformance, FederatedConformance, assert_equal_states, tiny_domains
from confed.testing.conformance import SEED
from tests.methods.companies import received

SMALL = {"dim": 6, "batch_size": 32, "local_epochs": 2, "train_negatives": 4, "learning_rate": 0.01}


class TestFPPDM(CompanyConformance):
    method = "fppdm"
    options = {**SMALL, "alignment": 0.5}
    uploads = ("mean", "deviation")

    @pytest.mark.parametrize("block", [64, 4])
    def test_a_silo_equals_the_oracle(self, block, monkeypatch):
        """A round with a target: the fused graph encoder against dense layers, loops over pairs and torch's Adam."""
        monkeypatch.setattr(graph_silo, "BLOCK", block)
        trainer = self.trained(1)
        name, silo = next(iter(self.companies(trainer).silos.items()))
        fresh = self.companies(self.federation()).silos[name]
        heard = received(trainer, name)
        data = silo.data
        edges = list(zip(data.positives.row_of.tolist(), data.positives.values.tolist(), strict=True))
        oracle = PlainFPPDM(data.users, data.items, edges, 6, 3)
        oracle.load(fresh.params)
        batches = [b for epoch in range(2) for b in batches_of(32, *fresh.rows(2, epoch))]
        rows = unnamed(heard)
        target = {int(u): (rows[k, :6], rows[k, 6:]) for k, u in enumerate(fresh.shared.users)}
        train(oracle, batches, 0.01, 0.5, target)
        fresh.train(2, heard)
        assert [tuple(t.shape)[1] for name, t in fresh.params.items() if "nodes" in name] == {64: [6], 4: [4, 2]}[block]
        torch.testing.assert_close(joined(fresh.params), oracle.nodes, rtol=1e-8, atol=1e-8)
        for stack in ("mean", "deviation"):
            for layer in range(3):
                found, expected = fresh.params[f"{stack}_{layer}"], getattr(oracle, stack)[layer]
                torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)

    def test_the_parts_of_an_upload_are_the_companies_messages(self):
        done = self.trained(1).round(2)
        parts = self.chosen.upload_parts(self.terms(), self.cut())
        assert set(parts) == set(self.cut().parts)
        assert sum(parts.values()) == done.upload_bytes

    def test_the_first_round_knows_no_target(self):
        """λ_P does nothing in round 1 (D-37) and something in round 2."""
        weak, strong = (self.trained(1, options={"alignment": w}) for w in (0.0, 5.0))
        assert_equal_states(weak.state(), strong.state(), tolerance=0)
        weak, strong = (self.trained(2, options={"alignment": w}) for w in (0.0, 5.0))
        assert any(not torch.equal(weak.state()[name], value) for name, value in strong.state().items())

    def test_alignment_brings_the_companies_ideas_together(self):
        def apart(weight):
            trainer = self.trained(6, options={"alignment": weight})
            total = 0.0
            for name, silo in self.companies(trainer).silos.items():
                rows = unnamed(received(trainer, name))
                total += float((unnamed(silo.share()) - rows).square().sum(dim=1).mean())
            return total

        assert apart(5.0) < 0.5 * apart(0.0)

    def test_companies_begin_alike_if_they_agreed_to(self):
        for common in (True, False):
            trainer = self.federation(options={"common_start": common})
            first, second = list(self.companies(trainer).silos.values())[:2]
            assert torch.equal(first.params["mean_0"], second.params["mean_0"]) == common
            both = sorted(set(first.shared.people.tolist()) & set(second.shared.people.tolist()))
            rows = []
            for silo in (first, second):
                place = [silo.shared.people.tolist().index(person) for person in both]
                rows.append(joined(silo.params)[silo.shared.users[place]])
            assert torch.equal(*rows) == common
            assert not torch.equal(joined(first.params)[-5:], joined(second.params)[-5:])


class TestAlone(FederatedConformance):
    """Companies that exchange nothing."""

    method = "fppdm"
    options = {**SMALL, "variant": "alone"}

    def test_nothing_travels(self):
        trainer = self.federation()
        done = trainer.round(1)
        assert (done.upload_bytes, done.download_bytes) == (0, 0)
        assert trainer.views == ("local",)
        assert self.chosen.upload_parts(self.terms(), self.cut()) == {}
        assert not trainer.server.strategy.state()


class TestColdUsers(CompanyConformance):
    """Companies that are told about users of whom they have nothing themselves."""

    method = "fppdm"
    options = {**SMALL, "alignment": 0.5}
    uploads = ("mean", "deviation")

    def cut(self):
        return cold_cut()

    def cut_with_other_held_out_items(self):
        return cold_cut_with_other_held_out_items()

    def examination(self):
        return Examination.of(self.cut(), TINY_COLD, SEED)

    def test_more_is_heard_than_told(self):
        done = self.trained(1).round(2)
        assert done.download_bytes > done.upload_bytes


def cold_data():
    return synthetic_domains(domains=2, users=60, items=40, interactions_per_user=8, overlap=0.9, seed=1)


@cache
def cold_cut():
    return split_domains(cold_data(), COLD, 0)


def cold_cut_with_other_held_out_items():
    """Every new user has taken up what the next one had; so no item disappears."""
    changed = {}
    for name, part in cold_data().parts.items():
        of = cold_cut().parts[name]
        new = [user for user, trains in zip(of.user_ids, of.training.positives.lengths, strict=True) if not trains]
        swapped = dict(zip(new, [*new[1:], *new[:1]], strict=True))
        rows = [(swapped.get(user, user), *rest) for user, *rest in part.frame.iter_rows()]
        changed[name] = Interactions(pl.DataFrame(rows, schema=part.frame.schema, orient="row"), time="real", name=name)
    return split_domains(Domains(changed), COLD, 0)


TINY_COLD = COLD.model_copy(update={"negatives": 15, "select_metric": "mrr@16"})


class TestFPPDMPlus(CompanyConformance):
    method = "fppdm++"
    options = {**SMALL, "clusters": 3}
    uploads = ("mean", "deviation")

    def test_without_its_weight_it_is_fppdm(self):
        plain = self.trained()
        self.options = SMALL
        plus = self.trained(options={"clustering": 0.0})
        self.method = "fppdm"
        same = self.trained()
        assert_equal_states(plus.state(), same.state(), tolerance=0)
        assert any(not torch.equal(plain.state()[name], value) for name, value in same.state().items())

    def test_users_are_drawn_to_their_clusters_and_not_to_the_middle(self):
        """Spread within the clusters that co-clustering finds, as a share of the spread of all: less with it."""

        def within(weight):
            trainer = self.trained(4, options={"clustering": weight})
            shares = []
            for silo in self.companies(trainer).silos.values():
                points = silo.user_points().detach()
                cluster = CoClustering(3).assign(points, Stream.of(0, "test"), 0).argmax(dim=1)
                centres = torch.stack([points[cluster == one].mean(dim=0) for one in cluster])
                total = (points - points.mean(dim=0)).square().sum()
                shares.append(float((points - centres).square().sum() / total))
            return sum(shares) / len(shares)

        assert within(2.0) < 0.9 * within(1e-9)

    @pytest.mark.parametrize("every", [1, 2, 5])
    def test_seldom_means_with_so_much_more_weight(self, every):
        """With one cluster λ_C ℓ_C is known: the spread around the middle of the batch."""
        trainer = self.federation(options={"clusters": 1, "clustering": 0.3, "cluster_every": every})
        silo = next(iter(self.companies(trainer).silos.values()))
        points = silo.user_points().detach()
        spread = float((points - points.mean(dim=0)).square().sum(dim=1).mean())
        nobody = torch.zeros(0, dtype=torch.long)
        users = torch.arange(len(points))
        pulled = [
            float(silo.pulled(Batch(number, step, nobody), users, points, points[:0]))
            for number in (1, 2, 3)
            for step in range(silo.local_epochs * silo.steps())
        ]
        assert pulled == pytest.approx([0.3 * every * spread if n % every == 0 else 0.0 for n in range(len(pulled))])


class TestPoints(CompanyConformance):
    """FPPDM++ (P): no deviations anywhere."""

    method = "fppdm++"
    options = {**SMALL, "clusters": 3, "variant": "P"}
    uploads = ("mean",)


class TestBare(CompanyConformance):
    """FPPDM++ (B): points, and no co-clustering."""

    method = "fppdm++"
    options = {**SMALL, "variant": "B"}
    uploads = ("mean",)


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        (FPPDM(), {}, (True, 0.05, 0.0)),
        (FPPDMPlus(), {}, (True, 0.05, 0.07)),
        (FPPDMPlus(), {"variant": "P"}, (False, 0.05, 0.07)),
        (FPPDMPlus(), {"variant": "B"}, (False, 0.05, 0.0)),
    ],
)
def test_variants(method, options, expected):
    config = method.config("douban", options)
    assert (config.distributions, config.pull.alignment, config.pull.clustering) == expected


@pytest.mark.parametrize(
    ("method", "options", "name"),
    [
        ("fppdm", {"variant": "alone", "upload_clip": 1.0, "upload_noise": 1.0}, "upload_clip"),
        ("fppdm++", {"variant": "alone", "alignment": 9.0}, "alignment"),
        ("fppdm++", {"variant": "B", "clusters": 3}, "clusters"),
        ("fppdm++", {"clustering": 0, "clusters": 3}, "clusters"),
        ("etl-fc", {"clustering": 0, "entropy": 0.5}, "entropy"),
        ("fppdm++", {"alternations": 1, "coupling": 5}, "coupling"),
        ("etl-f", {"variant": "alone", "alignment": 0.0}, "alignment"),
    ],
)
def test_options_that_would_do_nothing_are_refused(method, options, name):
    with pytest.raises(ConfedError, match=f"^method {re.escape(method)}: {name} does nothing with "):
        resolve(method, "douban", options=options)


@pytest.mark.parametrize(
    ("options", "views"), [({"view": "pushed"}, "local or global"), ({"view": "global", "variant": "alone"}, "local")]
)
def test_views_that_there_are_not_are_refused(options, views):
    few = {"negatives": 15, "more_negatives": (), "cutoffs": (5, 10), "population": "all"}
    settings = resolve("fppdm", "tiny", protocol="warm", options={**SMALL, **few, **options})
    with pytest.raises(ConfedError, match=f"fppdm can be scored under {views}$"):
        Experiment.prepare(settings, tiny_domains.domains())


def test_settings_of_the_paper():
    config = FPPDMPlus().config("douban", {})
    assert (config.dim, config.layers, config.batch_size, config.local_epochs) == (128, 3, 256, 5)
    assert (config.clusters, config.entropy, config.coupling) == (15, 0.05, 0.1)


def test_noise_needs_its_clip():
    with pytest.raises(Exception, match="belong together"):
        resolve("fppdm", "douban", protocol="warm", options={"upload_noise": 1.0})
