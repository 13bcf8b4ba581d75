import numpy as np
import pytest
import torch
from benchmarks import plain

from confed.methods.registry import method_named
from tests.conformance import FederatedConformance, Oracle, Recorder, assert_equal_states, plain_clients
from tests.tiny import ITEMS, USERS

NAMES = {"items": "embedding.weight", "weight": "affine.weight", "bias": "affine.bias"}


class CoFedRecConformance(FederatedConformance):
    method = "cofedrec"
    served = "pushed"
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
        engine = self.trained(rounds=1, trainer=self.engine(chunk=7))
        before = {name: value.clone() for name, value in engine.state().items()}
        assert (before["server.membership"] >= 0).all()
        engine.round(2, {})
        config = method_named(self.method).config("tiny", self.options)
        clients = plain_clients(self.oracle_of(config, before["server.membership"]), engine, before, 2)
        tables = torch.stack([client.params["items"] for client in clients])
        after = engine.state()
        torch.testing.assert_close(after["server.mean_items"], tables.mean(dim=0), rtol=1e-8, atol=1e-8)
        group = self.similar_group(tables, engine.pieces.strategy.notes(), after["server.membership"])
        assert 1 < len(group) < USERS
        tables[group] = tables[group].mean(dim=0)
        expected = {"client.items": tables} | {
            f"client.{name}": torch.stack([client.params[name] for client in clients]) for name in ("weight", "bias")
        }
        assert_equal_states({name: after[name] for name in expected}, expected, tolerance=1e-8)

    def oracle_of(self, config, membership):
        """Published style: the contrastive term by autograd in every step; or once, before the first batch."""
        item_rate = config.learning_rate * ITEMS * config.item_rate_factor
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
        penalty = lambda model: contrast(model.embedding.weight)  # noqa: E731
        every = plain.PlainFederation(federation.model, steps, config.local_epochs, config.batch_size, penalty)
        return Oracle(every, NAMES, {})

    def similar_group(self, tables, notes, membership):
        """methods.md 6.13.4, steps 4 to 6, in plain Python."""
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
        engine = self.trained(rounds=1, trainer=self.engine())
        local, pushed = Recorder(USERS, ITEMS), Recorder(USERS, ITEMS)
        engine.round(2, {"local": local, "pushed": pushed})
        state = engine.state()
        inside = state["server.group_of"] >= 0
        assert torch.equal(local.scores[~inside], pushed.scores[~inside])
        assert not torch.equal(local.scores[inside], pushed.scores[inside])
        member = int(torch.nonzero(inside)[0, 0])
        expected = state["client.items"][member] @ state["client.weight"][member] + state["client.bias"][member]
        torch.testing.assert_close(pushed.scores[member], expected)

    def test_bytes(self):
        """methods.md 4.5: tables up; down the categories, tables for the group, and once the first table for all."""
        engine = self.engine(dtype="float32")
        table = ITEMS * 6 * 4
        first = engine.round(1, {})
        assert first.upload_bytes == USERS * table
        assert first.download_bytes == USERS * table + first.server["group"] * table
        second = engine.round(2, {})
        assert second.download_bytes == USERS * ITEMS + second.server["group"] * table

    def test_the_first_round_has_no_contrast(self):
        plain_start = self.trained(1, options={**self.options, "contrast": 0.0})
        assert_equal_states(self.trained(1).state(), plain_start.state(), tolerance=1e-12)

    def test_an_exploding_term_names_round_client_and_term(self):
        from confed.errors import ConfedError

        options = {**self.options, "contrast": 1e12}
        with pytest.raises(ConfedError, match=r"round 2: the supcon term of client \d+ is \d"):
            self.trained(3, options=options)


class TestEveryStep(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "schedule": "every-step"}


class TestUserP(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "variant": "user-p"}


class TestVirtualRatings(CoFedRecConformance):
    options = {**CoFedRecConformance.options, "virtual_ratio": 0.4}

    def test_virtual_ratings_change_the_result(self):
        without = {**self.options, "virtual_ratio": 0.0}
        assert not torch.equal(
            self.trained().state()["client.items"], self.trained(options=without).state()["client.items"]
        )


class Trained(FederatedConformance):
    """Backbones and ablations whose clients are held against the oracle elsewhere, or whose term is by itself."""

    method = "cofedrec"
    complete_from = 2
    test_cohort_equals_the_oracle = None


class TestItemS(Trained):
    options = {**CoFedRecConformance.options, "variant": "item-s", "contrast": 0.5}


class TestItemSC(Trained):
    options = {**CoFedRecConformance.options, "variant": "item-sc", "schedule": "every-step"}


class TestOnFedMF(Trained):
    served = "pushed"
    options = {**CoFedRecConformance.options, "backbone": "fedmf"}


class TestOnFedNCF(Trained):
    served = "pushed"
    options = {**CoFedRecConformance.options, "backbone": "fedncf"}

    def test_both_item_tables_are_grouped_and_networks_averaged(self):
        engine = self.trained(2, trainer=self.engine())
        state = engine.state()
        inside = torch.nonzero(state["server.group_of"] == 0)[:, 0]
        assert len(inside) > 1
        for name in ("client.gmf_items", "client.mlp_items"):
            assert bool((state[name][inside] == state[name][inside[0]]).all())
        assert engine.pieces.strategy.uploads >= {"gmf_items", "mlp_items", "head", "weight_0", "samples"}


def test_origin_is_pfedrec_with_two_epochs():
    origin = TestItemS().trained(options={"variant": "origin", "dim": 6})
    engine = pfedrec_engine()
    for number in (1, 2):
        engine.round(number, {})
    torch.testing.assert_close(origin.state()["server.items"], engine.state()["server.items"])


def pfedrec_engine():
    from confed.engines.local import LocalEngine
    from tests.conformance import SEED
    from tests.tiny import cut

    method = method_named("pfedrec")
    pieces = method.pieces(method.config("tiny", {"dim": 6, "local_epochs": 2}), ITEMS)
    return LocalEngine(pieces, cut().training, SEED, dtype="float64")


def test_defaults_per_dataset_can_be_overridden():
    method = method_named("cofedrec")
    config = method.config("lastfm-2k", {})
    found = config.learning_rate, config.contrast, config.temperature, config.clusters
    assert found == (0.05, 0.001, 0.5, 500)
    assert method.config("ml-1m", {"clusters": 15}).clusters == 15
    assert method.config("ml-1m", {"clusters": 15}).temperature == 0.5


def test_chunked_scoring_of_kept_tables():
    """Single clients and all at once give the same scores."""
    engine = TestOncePerRound().trained(2, trainer=TestOncePerRound().engine())
    state = engine.serving_state()
    everybody = engine.serve(state, 2, np.arange(USERS))
    for client in (0, 13):
        torch.testing.assert_close(engine.serve(state, 2, np.array([client]))[0], everybody[client])
