import numpy as np
import pytest
import torch
from benchmarks import plain
from torch import nn

from confed.clients.backbones import AdaptiveTransfer
from confed.methods.fed3cr import VARIANTS
from confed.methods.registry import method_named
from confed.runs.settings import resolve
from tests import tiny
from tests.conformance import FederatedConformance, Oracle

DIM = 4
GENERATOR = {
    f"generator_{kind}_{layer}": f"generator.{layer}.{kind}" for layer in range(3) for kind in ("weight", "bias")
}


class Fed3CRConformance(FederatedConformance):
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
        engine = self.engine()
        assert engine.pieces.strategy.uploads == {"items", *GENERATOR}
        assert {spec.name for spec in engine.pieces.backbone.named(scope="private")} == {"user", "own"}

    def test_the_generator_has_the_published_size(self):
        for layers, floats in ((2, 140_416), (3, 304_512), (4, 698_240)):
            specs = AdaptiveTransfer(32, layers, 10.0).params
            assert sum(torch.empty(spec.shape).numel() for spec in specs) == floats


class TestWithoutTerms(Fed3CRConformance):
    """C1: nothing reaches whole tables, so clients hold only the rows they touch."""

    options = {**Fed3CRConformance.options, "variant": "C1"}

    def test_tables_are_compact(self):
        engine = self.engine()
        cohort, _ = engine._train(np.arange(tiny.USERS), engine.pieces.strategy.download(), 1)
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
        own = config._fedrap()

        def value(model, items):
            shared, personal = model.inner.embedding(items), model.personal(items)
            apart = -own.independence * nn.functional.mse_loss(personal, shared)
            small = own.sparsity * shared.abs().mean()
            return of_fed3cr(model, items) + own.curriculum(1.0).at(1) * (apart + small)

        return value

    def oracle(self, config, items):
        oracle = super().oracle(config, items)
        own = config._fedrap()
        federation = plain.PlainFederation(
            **{**vars(oracle.federation), "weight_decay": own.weight_decay, "tolerance": own.tolerance}
        )
        return Oracle(federation, oracle.names, oracle.merge)


class TestOnFedNCF(Fed3CRConformance):
    """Both item tables side by side, of double width."""

    options = {**Fed3CRConformance.options, "backbone": "fedncf", "layers": 2}
    names = {
        "gmf_user": "inner.ncf.gmf_user",
        "mlp_user": "inner.ncf.mlp_user",
        "own": "personal.weight",
        **{f"{k}_{n}": f"inner.ncf.layers.{n}.{k}" for n in range(3) for k in ("weight", "bias")},
        "head": "inner.ncf.output.weight",
        "head_bias": "inner.ncf.output.bias",
    }

    def test_cohort_equals_the_oracle(self):
        """FedNCF's plain client has two tables where the wrapper has one, so it is compared score by score."""
        engine = self.trained(1)
        backbone = engine.pieces.backbone
        state = engine.state()
        client = 5
        params = {
            spec.name: (state.get(f"server.{spec.name}", state.get(f"client.{spec.name}")))
            for spec in backbone.params
            if spec.role != "item"
        }
        params = {n: v[client][None] if f"client.{n}" in state else v[None] for n, v in params.items()}
        tables = {n: state[f"server.{n}"][None] for n in ("gmf_items", "mlp_items")}
        tables["own"] = state["client.own"][client][None]
        liked = torch.zeros(1, tiny.ITEMS, dtype=torch.bool)
        liked[0, tiny.cut().training.positives[client]] = True
        scores = backbone.logits(params, backbone.look(params, tables, liked))[0]
        both = torch.cat([tables["gmf_items"], tables["mlp_items"]], dim=2)[0]
        prototypes = torch.cat([both[liked[0]].mean(dim=0), tables["own"][0][liked[0]].mean(dim=0)])
        hidden = torch.relu(params["generator_weight_0"][0] @ prototypes + params["generator_bias_0"][0])
        made = params["generator_weight_1"][0] @ hidden + params["generator_bias_1"][0]
        fused = both @ (torch.eye(2 * DIM) + 2.0 * made.view(2 * DIM, 2 * DIM)).T + tables["own"][0]
        ncf = plain.PlainNeuMF(tiny.ITEMS, DIM, (4, 2, 1)).double()
        ncf.load_state_dict(
            {
                "gmf_items.weight": fused[:, :DIM],
                "mlp_items.weight": fused[:, DIM:],
                "gmf_user": params["gmf_user"][0],
                "mlp_user": params["mlp_user"][0],
                **{f"layers.{n}.{k}": params[f"{k}_{n}"][0] for n in range(3) for k in ("weight", "bias")},
                "output.weight": params["head"],
                "output.bias": params["head_bias"][0],
            }
        )
        torch.testing.assert_close(scores, ncf(torch.arange(tiny.ITEMS)))


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_name_their_parts(variant):
    config = method_named("fed3cr").config("tiny", {"variant": variant})
    assert config.parts == VARIANTS[variant]
    names = [term.name for term in config.dense()]
    expected = zip(VARIANTS[variant][1:], ("consistency", "complementarity"), strict=True)
    assert names == [name for part, name in expected if part != "none"]


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
    terms = config.procedure(config.client(tiny.ITEMS)).steps[0].terms
    assert [type(term).__name__ for term in terms] == ["SaturatingBCE", "Apart", "Small"]


def test_unknown_parts_are_refused():
    with pytest.raises(Exception, match="consistency"):
        resolve("fed3cr", "tiny", options={"consistency": "Lz"})
