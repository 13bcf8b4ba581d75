import math

import pytest
import torch
from benchmarks import plain

from confed.clients.objectives.additive import Curriculum
from confed.errors import ConfedError, DivergedError
from confed.methods.registry import method_named
from confed.runs.settings import resolve
from confed.testing.states import whole_state
from tests.oracle import Oracle, OracleConformance

NAMES = {
    "items": "embedding.weight",
    "own": "personal.weight",
    "weight": "affine.weight",
    "bias": "affine.bias",
}


class FedRAPConformance(OracleConformance):
    method = "fedrap"
    options = {
        "batch_size": 16,
        "dim": 4,
        "local_epochs": 4,
        "learning_rate": 0.3,
        "item_rate": 5.0,
        "init_deviation": 0.5,
        "weight_decay": 0.003,
        "independence": 0.05,
        "sparsity": 0.2,
    }

    def penalty(self, config):
        """The published form, on the rows of the batch, with the weights of round 1."""
        grown = 1.0 if config.reproduction.dead_schedule else math.tanh(0.1)

        def value(model, items):
            shared, own = model.embedding(items), model.personal(items)
            apart = -config.independence * torch.nn.functional.mse_loss(own, shared)
            return grown * (apart + config.sparsity * self.size(shared))

        return value

    def size(self, rows):
        return rows.abs().mean()

    def oracle(self, config, items):
        rates = {"affine": config.learning_rate, "embedding": config.item_rate, "personal": config.item_rate}
        federation = plain.PlainFederation(
            plain.PlainAdditive(items, config.dim),
            (plain.PlainStep(rates),),
            config.local_epochs,
            config.batch_size,
            self.penalty(config),
            config.weight_decay,
            config.batch_decay,
            config.tolerance or None,
        )
        return Oracle(federation, NAMES, {"items": "mean"})


class TestFedRAP(FedRAPConformance):
    """Never stops early."""

    options = {**FedRAPConformance.options, "tolerance": 0.0}

    def test_the_personal_table_stays_and_is_never_averaged(self):
        trainer = self.trained(2)
        own = self.people(trainer).store.read_tables("own", torch.arange(2))
        assert trainer.server.agreement.uploads == {"items", "loss"}
        assert not torch.equal(own[0], own[1])

    def test_rates_shrink_round_by_round(self):
        procedure = method_named("fedrap").config("tiny", self.options).procedure()
        assert procedure.at(1)[0].steps[0].rates["items"] == 5.0
        assert procedure.at(3)[0].steps[0].rates["items"] == pytest.approx(5.0 * 0.97**2)


class TestStopping(FedRAPConformance):
    """A coarse tolerance: some clients stop after two epochs, others go on to the last."""

    options = {**FedRAPConformance.options, "tolerance": 0.1}

    def test_some_stop_and_some_do_not(self):
        ends = {t: whole_state(self.trained(1, options={"tolerance": t}))["client.own"] for t in (0.0, 0.1)}
        same = (ends[0.0] == ends[0.1]).flatten(1).all(dim=1)
        assert 0 < int(same.sum()) < len(same)


class TestDeadSchedule(FedRAPConformance):
    options = {**FedRAPConformance.options, "reproduction": {"dead_schedule": True}}


class TestSquares(FedRAPConformance):
    options = {**FedRAPConformance.options, "regulariser": "l2"}

    def size(self, rows):
        return rows.square().mean()


class TestLargest(FedRAPConformance):
    options = {**FedRAPConformance.options, "regulariser": "max"}

    def size(self, rows):
        return rows.abs().max()


class TestNuclear(FedRAPConformance):
    options = {**FedRAPConformance.options, "regulariser": "nuclear"}

    def size(self, rows):
        return torch.linalg.matrix_norm(rows, "nuc") / len(rows)


class TestWholeTables(FedRAPConformance):
    """The paper's own form."""

    options = {**FedRAPConformance.options, "terms": "table", "independence": 1e-3, "sparsity": 1e-3}

    def penalty(self, config):
        grown = math.tanh(0.1)

        def value(model, items):
            shared, own = model.embedding.weight, model.personal.weight
            apart = -config.independence * (own - shared).square().sum()
            return grown * (apart + config.sparsity * shared.abs().sum())

        return value


@pytest.mark.parametrize(("round_", "expected"), [(1, 0.0996680), (10, 0.7615942), (100, 1.0)])
def test_curriculum_values(round_, expected):
    assert Curriculum(0.5).at(round_) == pytest.approx(0.5 * expected, rel=1e-5)
    assert Curriculum(0.5, constant=True).at(round_) == 0.5


def test_whole_tables_need_small_weights():
    """With default rates a step multiplies the distance of the tables by 1 + 4 λ(t) · 1000."""
    case = TestWholeTables()
    case.options = {"dim": 4, "terms": "table"}
    case.trained(3, options={"independence": 1e-6, "sparsity": 1e-6})
    with pytest.raises(DivergedError, match="independence"):
        case.trained(3)


@pytest.mark.parametrize("norm", ["l2", "max", "nuclear"])
def test_whole_tables_know_one_norm(norm):
    with pytest.raises(ConfedError, match=f"regulariser = {norm}"):
        resolve("fedrap", "ml-100k", options={"terms": "table", "regulariser": norm})
