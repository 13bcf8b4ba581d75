import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from benchmarks import plain
from torch import nn

from confed.clients.backbones import AdaptiveTransfer
from confed.errors import ConfedError
from confed.methods.registry import method_named
from confed.runs.settings import resolve
from confed.testing import tiny
from tests.oracle import Oracle, OracleConformance

DIM = 4
GENERATOR = {
    f"generator_{kind}_{layer}": f"generator.{layer}.{kind}" for layer in range(3) for kind in ("weight", "bias")
}


class Fed3CRConformance(OracleConformance):
    method = "fed3cr"
    options = {
        "batch_size": 16,
        "dim": DIM,
        "local_epochs": 3,
        "learning_rate": 0.05,
        "item_rate": 1.0,
        "alpha": 2.0,
        "init_deviation": 0.5,
        "own_deviation": 0.3,
        "consistency_weight": 0.7,
        "complementarity_weight": 0.9,
    }
    names = {"user": "inner.user", "items": "inner.embedding.weight", "own": "personal.weight"}

    def inner(self, items):
        return plain.PlainDot(items, DIM)

    def steps(self, config):
        rates = {"inner.user": config.learning_rate, "generator": config.learning_rate, "transfer": 0.05}
        return (plain.PlainStep({**rates, "inner.embedding": config.item_rate, "personal": config.item_rate}),)

    def penalty(self, config):
        _, consistency, complementarity = config.parts

        def value(model, items):
            enhanced, own = model.views()
            total = torch.zeros((), dtype=own.dtype)
            if consistency == "La":
                alike = plain.list_consistency(enhanced, own, model.positives, config.temperature)
                total = total + config.consistency_weight * alike
            if complementarity == "Lo":
                total = total + config.complementarity_weight * plain.orthogonality(enhanced, own)
            return total

        return value

    def oracle(self, config, items):
        kind = config.parts[0]
        extra = {"ace": GENERATOR, "off": {}}.get(kind, {"transfer": "transfer"})
        model = plain.PlainDual(
            self.inner(items), items, DIM, config.layers, config.alpha, kind, residual=config.residual
        )
        federation = plain.PlainFederation(
            model,
            self.steps(config),
            config.local_epochs,
            config.batch_size,
            self.penalty(config),
            batch_decay=config.batch_decay,
        )
        shared = {"items", *extra}
        return Oracle(federation, {**self.names, **extra}, dict.fromkeys(shared, "mean"))


class TestFed3CR(Fed3CRConformance):
    def test_what_travels_is_the_consensus_and_the_generator(self):
        people = self.people(self.federation())
        assert people.agreement.uploads == {"items", *GENERATOR, "loss"}
        assert {spec.name for spec in people.backbone.named(scope="private")} == {"user", "own"}

    def test_the_generator_has_the_published_size(self):
        for layers, floats in ((2, 140_416), (3, 304_512), (4, 698_240)):
            specs = AdaptiveTransfer(32, layers, 10.0).params
            assert sum(torch.empty(spec.shape).numel() for spec in specs) == floats


class TestWithoutTerms(Fed3CRConformance):
    """C1: nothing reaches whole tables, so clients hold only the rows they touch."""

    options = {**Fed3CRConformance.options, "variant": "C1"}

    def test_tables_are_compact(self):
        trainer = self.federation()
        cohort = self.people(trainer).train_chunk(1, trainer.server.download(), np.arange(tiny.USERS))
        assert cohort.tables["own"].shape[1] < tiny.ITEMS


class TestAsPrinted(Fed3CRConformance):
    """W = α F, without the identity."""

    options = {**Fed3CRConformance.options, "residual": False}


class TestWithoutEnhancement(Fed3CRConformance):
    """C4."""

    options = {**Fed3CRConformance.options, "variant": "C4"}


class TestConsensusTransfer(Fed3CRConformance):
    options = {**Fed3CRConformance.options, "variant": "C1", "ace": "consensus"}


class TestUnifiedTransfer(Fed3CRConformance):
    options = {**Fed3CRConformance.options, "ace": "unified"}


class TestOnPFedRec(Fed3CRConformance):
    """The head first, then both tables and the generator."""

    options = {**Fed3CRConformance.options, "backbone": "pfedrec"}
    names = {
        "weight": "inner.affine.weight",
        "bias": "inner.affine.bias",
        "items": "inner.embedding.weight",
        "own": "personal.weight",
    }

    def inner(self, items):
        return plain.PlainLinear(items, DIM)

    def steps(self, config):
        tables = {"inner.embedding": config.item_rate, "personal": config.item_rate}
        return (
            plain.PlainStep({"inner.affine": config.learning_rate}),
            plain.PlainStep({**tables, "generator": config.learning_rate}),
        )


class TestOnFedRAP(TestOnPFedRec):
    """One joint step, with FedRAP's terms on the rows of the batch, its decay and its stopping rule."""

    options = {**Fed3CRConformance.options, "backbone": "fedrap"}

    def steps(self, config):
        tables = {"inner.embedding": config.item_rate, "personal": config.item_rate}
        return (plain.PlainStep({"inner.affine": config.learning_rate, "generator": config.learning_rate, **tables}),)

    def penalty(self, config):
        of_fed3cr = super().penalty(config)

        def value(model, items):
            shared, personal = model.inner.embedding(items), model.personal(items)
            apart = -0.005 * nn.functional.mse_loss(personal, shared)
            small = 1e-3 * shared.abs().mean()
            return of_fed3cr(model, items) + math.tanh(0.1) * (apart + small)

        return value

    def oracle(self, config, items):
        oracle = super().oracle(config, items)
        federation = plain.PlainFederation(**{**vars(oracle.federation), "weight_decay": 1e-6, "tolerance": 1e-4})
        return Oracle(federation, oracle.names, oracle.merge)


class PlainTwoTables(plain.PlainNeuMF):
    """FedNCF's client, which scores rows of both its item tables side by side."""

    @property
    def embedding(self):
        return SimpleNamespace(weight=torch.cat([self.gmf_items.weight, self.mlp_items.weight], dim=1))

    def score(self, rows):
        gmf = self.gmf_user * rows[:, :DIM]
        hidden = torch.cat([self.mlp_user.expand(len(rows), -1), rows[:, DIM:]], dim=1)
        for layer in self.layers:
            hidden = torch.relu(layer(hidden))
        return self.output(torch.cat([gmf, hidden], dim=1))[:, 0]


class TestOnFedNCF(Fed3CRConformance):
    """Both item tables side by side, of double width; tower and output travel as well."""

    options = {**Fed3CRConformance.options, "backbone": "fedncf"}
    # Cosines of short rows are steep: in two rounds own tables make 27 times as much of a difference of 6e-8 at the
    # start (measured in float64), and float32 adds such differences in every step.
    single_precision = 1e-4
    tower = (4, 2, 1)
    names = {
        **{f"{branch}_user": f"inner.{branch}_user" for branch in ("gmf", "mlp")},
        **{f"{branch}_items": f"inner.{branch}_items.weight" for branch in ("gmf", "mlp")},
        **{f"{kind}_{n}": f"inner.layers.{n}.{kind}" for n in range(3) for kind in ("weight", "bias")},
        "head": "inner.output.weight",
        "head_bias": "inner.output.bias",
        "own": "personal.weight",
    }

    def oracle(self, config, items):
        inner = PlainTwoTables(items, DIM, self.tower)
        model = plain.PlainDual(inner, items, 2 * DIM, config.layers, config.alpha)
        slow = ("inner.gmf_user", "inner.mlp_user", "inner.layers", "inner.output", "generator")
        fast = ("inner.gmf_items", "inner.mlp_items", "personal")
        rates = dict.fromkeys(slow, config.learning_rate) | dict.fromkeys(fast, config.item_rate)
        federation = plain.PlainFederation(
            model,
            (plain.PlainStep(rates),),
            config.local_epochs,
            config.batch_size,
            self.penalty(config),
            batch_decay=config.batch_decay,
        )
        names = {**self.names, **GENERATOR}
        private = {"own", "gmf_user", "mlp_user"}
        return Oracle(federation, names, dict.fromkeys(names.keys() - private, "mean"))


MARKS = {"C0": "", "C1": "ACE", "C2": "La", "C3": "Lo", "C4": "La Lo", "C5": "ACE La", "C6": "ACE Lo"}
"""Table III, as decisions.md "fed3cr" reads it."""


@pytest.mark.parametrize(("variant", "marks"), [*MARKS.items(), ("full", "ACE La Lo")])
def test_variants_name_their_parts(variant, marks):
    config = method_named("fed3cr").config("tiny", {"variant": variant})
    assert isinstance(config.transfer(DIM), AdaptiveTransfer) == ("ACE" in marks)
    terms = {"La": "consistency", "Lo": "complementarity"}
    assert [term.name for term in config.dense()] == [name for mark, name in terms.items() if mark in marks]


def test_rates_shrink_from_round_to_round():
    config = method_named("fed3cr").config("tiny", {"round_decay": 0.5, "item_rate": 8.0, "learning_rate": 0.4})
    procedure = config.procedure(config.client(tiny.ITEMS))
    (step,) = procedure.at(3)[0].steps
    assert step.rates["items"] == step.rates["own"] == pytest.approx(2.0)
    assert step.rates["user"] == step.rates["generator_bias_0"] == pytest.approx(0.1)


@pytest.mark.parametrize(("option", "name"), [("user_deviation", "user"), ("own_deviation", "own")])
def test_deviations_of_the_start(option, name):
    config = method_named("fed3cr").config("tiny", {option: 7.0, "dim": 64})
    (spec,) = [spec for spec in config.client(200).params if spec.name == name]
    assert float(spec.initial(0, torch.float64).std()) == pytest.approx(7.0, rel=0.3)


def test_a_part_replaces_what_the_variant_says():
    config = method_named("fed3cr").config("tiny", {"variant": "C1", "consistency": "Ls", "ace": "unified"})
    assert config.parts == ("unified", "Ls", "none")


@pytest.mark.parametrize(
    ("options", "published"),
    [({}, "fed3cr"), ({"variant": "C1"}, None), ({"backbone": "pfedrec"}, None), ({"consistency": "Ls"}, None)],
)
def test_only_the_whole_method_is_compared_with_published_figures(options, published):
    method = method_named("fed3cr")
    assert method.published_as(method.config("ml-1m", options)) == published


def test_on_fedrap_the_loss_can_be_the_published_one():
    options = {"backbone": "fedrap", "reproduction": {"saturating_bce": True}}
    config = method_named("fed3cr").config("tiny", options)
    terms = next(config.procedure(config.client(tiny.ITEMS)).steps).terms
    assert [type(term).__name__ for term in terms] == ["SaturatingBCE", "Apart", "Small"]


def test_unknown_parts_are_refused_and_the_known_ones_named_as_they_are_written():
    with pytest.raises(ConfedError, match="consistency = 'Lz': input should be 'none', 'La', 'Ls' or 'Lc'"):
        resolve("fed3cr", "tiny", options={"consistency": "Lz"})
