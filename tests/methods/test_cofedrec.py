from typing import ClassVar

import pytest
import torch
from benchmarks import plain

from confed.data.interactions import ONLY
from confed.errors import ConfedError
from confed.messages import Download, Push
from confed.methods.registry import method_named
from confed.testing import PeopleConformance, Recorder, assert_equal_states
from confed.testing.tiny import ITEMS, USERS
from tests.oracle import Oracle, OracleConformance, plain_clients

NAMES = {"items": "embedding.weight", "weight": "affine.weight", "bias": "affine.bias"}


def second_round(case):
    """A trainer after the first round in which items have categories, its state before that round, and what the
    strategy noted.
    """
    trainer = case.trained(rounds=1, chunk=7)
    before = {name: value.clone() for name, value in trainer.state().items()}
    assert (before["server.membership"] >= 0).all()
    return trainer, before, trainer.round(2).notes


class CoFedRecConformance(OracleConformance):
    method = "cofedrec"
    served = "pushed"
    exchanges = 3  # training, who is similar, what their group made
    complete_from = 2
    options = {
        "batch_size": 16,
        "dim": 6,
        "item_rate_factor": 1.0,
        "clusters": 5,
        "contrast": 0.02,
        "temperature": 0.2,
    }

    def test_cohort_equals_the_oracle(self):
        """Round 2, when items have categories and some clients share a table: clients one by one, then the server."""
        trainer, before, notes = second_round(self)
        oracle = self.oracle_of(self.terms().config, before["server.membership"])
        clients = plain_clients(oracle, self.people(trainer), before, 2)
        tables = torch.stack([client.params["items"] for client in clients])
        after = trainer.state()
        torch.testing.assert_close(after["server.mean_items"], tables.mean(dim=0), rtol=1e-8, atol=1e-8)
        group = self.similar_group(tables, notes, after["server.membership"])
        assert 1 < len(group) < USERS
        tables[group] = tables[group].mean(dim=0)
        expected = {"client.items": tables} | {
            f"client.{name}": torch.stack([client.params[name] for client in clients]) for name in ("weight", "bias")
        }
        assert_equal_states({name: after[name] for name in expected}, expected, tolerance=1e-8)

    def oracle_of(self, config, membership):
        """Published style: the contrastive term by autograd in every step; or once, before the first batch."""
        item_rate = config.item_rate(ITEMS)
        steps = (plain.PlainStep({"affine": config.learning_rate}), plain.PlainStep({"embedding": item_rate}))

        def contrast(rows):
            return config.contrast * plain.supervised_contrast(rows, membership, config.temperature)

        def once(state, samples):
            rows = state["embedding.weight"].clone().requires_grad_()
            (gradient,) = torch.autograd.grad(contrast(rows), rows)
            steps_ahead = config.local_epochs * -(-samples // config.batch_size)
            return {**state, "embedding.weight": rows.detach() - item_rate * steps_ahead * gradient}

        federation = plain.PlainFederation(
            plain.PlainLinear(ITEMS, config.dim), steps, config.local_epochs, config.batch_size
        )
        if not config.dense(("items",)):
            return Oracle(federation, NAMES, {})
        if config.schedule == "once-per-round":
            return Oracle(federation, NAMES, {}, begin=once)
        penalty = lambda model, items: contrast(model.embedding.weight)  # noqa: E731
        every = plain.PlainFederation(federation.model, steps, config.local_epochs, config.batch_size, penalty)
        return Oracle(every, NAMES, {})

    def similar_group(self, tables, notes, membership):
        """The group of decisions.md "cofedrec", in plain Python."""
        rows = torch.nonzero(membership == notes["category"])[:, 0]
        cosine = torch.nn.functional.cosine_similarity
        scores = [float(cosine(table[rows], tables[notes["core"]][rows], dim=1).sum()) for table in tables]
        order = sorted(range(USERS), key=lambda u: -scores[u])
        ranked = [scores[u] for u in order]
        slope = (ranked[-1] - ranked[0]) / (USERS - 1)
        distance = [abs(s - ranked[0] - j * slope) for j, s in enumerate(ranked)]
        return order[: distance.index(max(distance)) + 1]


class TestOncePerRound(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "schedule": "once-per-round"}

    def test_views(self):
        assert self.trainer().views == ("pushed", "local")

    def test_members_are_scored_with_the_pushed_table_and_others_with_their_own(self):
        recorders = Recorder.of(self.cut())
        trainer = self.trained(1, judges=recorders)
        trainer.round(2, ["local", "pushed"])
        local, pushed = (card.scores for card in recorders[ONLY].cards)
        state = trainer.state()
        inside = state["server.group_of"] >= 0
        assert torch.equal(local[~inside], pushed[~inside])
        assert not torch.equal(local[inside], pushed[inside])
        member = int(torch.nonzero(inside)[0, 0])
        expected = state["client.items"][member] @ state["client.weight"][member] + state["client.bias"][member]
        torch.testing.assert_close(pushed[member], expected)

    def test_bytes(self):
        """decisions.md "Traffic": tables up; down categories, tables for the group, once the first table for all."""
        trainer = self.federation(dtype="float32")
        nowhere = torch.zeros(1, dtype=torch.int64)
        table = len(Push({"items": torch.zeros(1, ITEMS, 6)}, nowhere).to_bytes())
        categories = len(Download({}, nowhere, {"membership": torch.zeros(ITEMS, dtype=torch.uint8)}).to_bytes())
        first = trainer.round(1)
        assert 0 < first.upload_bytes / USERS - ITEMS * 6 * 4 < 500
        assert first.download_bytes == (USERS + first.notes["group"]) * table
        second = trainer.round(2)
        assert second.download_bytes == USERS * categories + second.notes["group"] * table

    def test_the_first_round_has_no_contrast(self):
        plain_start = self.trained(1, options={"contrast": 0.0})
        assert_equal_states(self.trained(1).state(), plain_start.state(), tolerance=1e-12)

    @pytest.mark.parametrize(
        ("spoil", "what"),
        [
            (lambda rows: rows.fill_(torch.nan), r"the gradient of the supcon term of client 7 is not finite"),
            (lambda rows: rows.mul_(1e-30), r"the gradient of the supcon term of client 7 is \d"),
        ],
    )
    def test_what_explodes_names_client_and_term(self, spoil, what):
        trainer = self.trained(1)
        state = {name: value.clone() for name, value in trainer.state().items()}
        spoil(state["client.items"][7])
        state["server.group_of"].fill_(-1)
        trainer.load(state)
        with pytest.raises(ConfedError, match=what):
            trainer.round(2)


class TestEveryStep(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "schedule": "every-step"}


class TestSampledAnchors(CoFedRecConformance):
    """More items than may all be anchors: chunks, resume and the rest must hold with a draw as well."""

    options = {**CoFedRecConformance.options, "supcon_exact": 20, "supcon_anchors": 16, "schedule": "every-step"}
    test_cohort_equals_the_oracle = None


class TestUserP(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "variant": "user-p"}


class TestVirtualRatings(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "virtual_ratio": 0.4}

    def test_virtual_ratings_change_the_result(self):
        found, without = self.trained().state(), self.trained(options={"virtual_ratio": 0.0}).state()
        assert not torch.equal(found["client.items"], without["client.items"])


class WithoutGroups(OracleConformance):
    """The mean for everybody, after a round in which items got their categories."""

    method = "cofedrec"
    complete_from = 2

    def oracle_of(self, config, membership):
        raise NotImplementedError

    def test_cohort_equals_the_oracle(self):
        trainer, before, _ = second_round(self)
        oracle = self.oracle_of(self.terms().config, before["server.membership"])
        tables = [client.params["items"] for client in plain_clients(oracle, self.people(trainer), before, 2)]
        expected = torch.stack(tables).mean(dim=0)
        torch.testing.assert_close(trainer.state()["server.items"], expected, rtol=1e-8, atol=1e-8)


class LikedLinear(plain.PlainLinear):
    positives = torch.tensor([], dtype=torch.long)


def item_similarity(rows, membership, liked):
    """Eq. 10, one pair at a time."""
    total = torch.zeros((), dtype=rows.dtype)
    for i in liked.tolist():
        partners = [z for z in torch.nonzero(membership == membership[i])[:, 0].tolist() if z != i]
        for z in partners:
            total = total - torch.nn.functional.cosine_similarity(rows[i], rows[z], dim=0) / len(partners)
    return total / len(liked)


class TestItemS(WithoutGroups):
    options = {**CoFedRecConformance.options, "variant": "item-s", "contrast": 0.5, "schedule": "every-step"}

    def oracle_of(self, config, membership):
        item_rate = config.item_rate(ITEMS)
        steps = (plain.PlainStep({"affine": config.learning_rate}), plain.PlainStep({"embedding": item_rate}))

        def penalty(model, items):
            return config.contrast * item_similarity(model.embedding.weight, membership, model.positives)

        model = LikedLinear(ITEMS, config.dim)
        return Oracle(plain.PlainFederation(model, steps, config.local_epochs, config.batch_size, penalty), NAMES, {})


class TestItemSC(WithoutGroups):
    options = {**CoFedRecConformance.options, "variant": "item-sc", "schedule": "every-step"}

    def oracle_of(self, config, membership):
        return TestEveryStep().oracle_of(config, membership)


class TestItemSCOncePerRound(TestItemSC):
    options = {**CoFedRecConformance.options, "variant": "item-sc"}


class TestNestedGroups(CoFedRecConformance):
    """Several tables are pushed in a round; which, tests/server/test_cocluster.py holds against plain code."""

    options = {**CoFedRecConformance.options, "categories_per_round": 2}
    exchanges = 4  # the similar group is divided once more
    test_cohort_equals_the_oracle = None

    def test_a_client_has_the_mean_of_its_own_group(self):
        trainer, before, _ = second_round(self)
        oracle = self.oracle_of(self.terms().config, before["server.membership"])
        clients = plain_clients(oracle, self.people(trainer), before, 2)
        tables = torch.stack([client.params["items"] for client in clients])
        group_of = trainer.state()["server.group_of"]
        assert int(group_of.max()) >= 1
        for group in range(int(group_of.max()) + 1):
            inside = group_of == group
            tables[inside] = tables[inside].mean(dim=0)
        torch.testing.assert_close(trainer.state()["client.items"], tables, rtol=1e-8, atol=1e-8)


class PlugIn(OracleConformance):
    """Other backbones: one joint step, the term on the item tables side by side, in the published style."""

    method = "cofedrec"
    served = "pushed"
    exchanges = 3
    complete_from = 2
    names: ClassVar[dict[str, str]]
    tables: ClassVar[tuple[str, ...]]

    def model(self, config):
        raise NotImplementedError

    def test_cohort_equals_the_oracle(self):
        trainer, before, _ = second_round(self)
        oracle = self.joint_oracle(self.terms().config, before["server.membership"])
        clients = plain_clients(oracle, self.people(trainer), before, 2)
        after = trainer.state()
        for name in self.tables:
            mean = torch.stack([client.params[name] for client in clients]).mean(dim=0)
            torch.testing.assert_close(after[f"server.mean_{name}"], mean, rtol=1e-8, atol=1e-8)
        moved = []
        for name in (n for n in self.names if n not in self.tables):
            own = [client.params[name] for client in clients]
            if f"client.{name}" in after:
                found, expected = after[f"client.{name}"], torch.stack(own)
            else:
                found = after[f"server.{name}"]
                expected = plain.weighted_mean(found, own, [client.samples for client in clients])
                moved.append(not torch.equal(found, before[f"server.{name}"]))
            torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
        assert any(moved) == bool(moved)

    def joint_oracle(self, config, membership):
        item_rate = config.item_rate(ITEMS)
        modules = [self.names[name] for name in self.tables]
        others = [module for module in self.names.values() if module not in modules]
        rates = dict.fromkeys(modules, item_rate) | dict.fromkeys(others, config.learning_rate)

        def penalty(model, items):
            rows = torch.cat([model.get_parameter(module) for module in modules], dim=1)
            return config.contrast * plain.supervised_contrast(rows, membership, config.temperature)

        federation = plain.PlainFederation(
            self.model(config), (plain.PlainStep(rates),), config.local_epochs, config.batch_size, penalty
        )
        return Oracle(federation, self.names, {})


class TestOnFedMF(PlugIn):
    options = {**CoFedRecConformance.options, "backbone": "fedmf", "schedule": "every-step"}
    names = {"items": "embedding.weight", "user": "user"}
    tables = ("items",)

    def model(self, config):
        return plain.PlainDot(ITEMS, config.dim)


class TestOnFedNCF(PlugIn):
    options = {**CoFedRecConformance.options, "backbone": "fedncf", "schedule": "every-step"}
    names = {
        **{f"weight_{i}": f"layers.{i}.weight" for i in range(3)},
        **{f"bias_{i}": f"layers.{i}.bias" for i in range(3)},
        **{"head": "output.weight", "head_bias": "output.bias", "gmf_user": "gmf_user", "mlp_user": "mlp_user"},
        **{"gmf_items": "gmf_items.weight", "mlp_items": "mlp_items.weight"},
    }
    tables = ("gmf_items", "mlp_items")

    def model(self, config):
        return plain.PlainNeuMF(ITEMS, config.dim, (config.dim, config.dim // 2, config.dim // 4))

    def test_both_item_tables_are_grouped(self):
        state = self.trained(2).state()
        inside = torch.nonzero(state["server.group_of"] == 0)[:, 0]
        assert len(inside) > 1
        for name in ("client.gmf_items", "client.mlp_items"):
            assert bool((state[name][inside] == state[name][inside[0]]).all())


def test_published_figures_stand_beside_the_published_configuration_only():
    method = method_named("cofedrec")
    assert method.published_as(method.config("ml-100k", {})) == "cofedrec"
    assert method.published_as(method.config("ml-100k", {"variant": "origin"})) is None
    others = {"backbone": "fedmf", "contrast": 0.0, "virtual_ratio": 0.1, "supcon": "paper", "categories_per_round": 2}
    for option, value in others.items():
        assert method.published_as(method.config("ml-100k", {option: value})) is None


@pytest.mark.parametrize("options", [{"virtual_ratio": float("inf")}, {"virtual_ratio": 11}, {"temperature": 0.001}])
def test_settings_that_cannot_work_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        method_named("cofedrec").config("ml-100k", options)


def test_a_term_of_weight_zero_is_left_out():
    method = method_named("cofedrec")
    for variant in ("item-s", "item-sc", "full"):
        assert not method.config("ml-100k", {"variant": variant, "contrast": 0.0}).dense(("items",))


def test_origin_is_pfedrec_with_two_epochs():
    class Origin(PeopleConformance):
        method = "cofedrec"
        options = {"dim": 6, "variant": "origin"}

    class PFedRec(PeopleConformance):
        method = "pfedrec"
        options = {"dim": 6, "local_epochs": 2}

    origin, expected = Origin().trained().state(), PFedRec().trained().state()
    torch.testing.assert_close(origin["server.items"], expected["server.items"])


def test_defaults_per_dataset_can_be_overridden():
    method = method_named("cofedrec")
    config = method.config("lastfm-2k", {})
    found = config.learning_rate, config.contrast, config.temperature, config.clusters
    assert found == (0.05, 0.001, 0.5, 500)
    assert method.config("ml-1m", {"clusters": 15}).clusters == 15
    assert method.config("ml-1m", {"clusters": 15}).temperature == 0.5
    assert method.config("ml-100k", {}).contrast == 0.01


def test_chunked_scoring_of_kept_tables():
    """Single clients and all at once give the same scores."""
    case = TestOncePerRound()
    score = case.chosen.scorer(case.terms(), case.cut(), case.trained(2).serving_state(), 2)
    everybody = score(torch.arange(USERS))
    for client in (0, 13):
        torch.testing.assert_close(score(torch.tensor([client]))[0], everybody[client])
