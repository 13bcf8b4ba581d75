import pytest
from benchmarks.plain import PlainDot, PlainFederation, PlainStep

from confed.methods.registry import method_named
from tests.oracle import Oracle, OracleConformance

RULES = {"sum": "sum_of_changes", "mean": "mean", "count": "mean_over_holders"}


class FedMFConformance(OracleConformance):
    method = "fedmf"

    def oracle(self, config, items):
        rates = {"user": config.learning_rate, "embedding": config.item_rate(items)}
        return Oracle(
            PlainFederation(PlainDot(items, config.dim), (PlainStep(rates),), config.local_epochs, config.batch_size),
            names={"items": "embedding.weight", "user": "user"},
            merge={"items": RULES[config.aggregation]},
        )


class TestSum(FedMFConformance):
    options = {"batch_size": 16, "dim": 8, "aggregation": "sum"}


class TestMean(FedMFConformance):
    options = {"batch_size": 16, "dim": 8, "aggregation": "mean", "item_rate_factor": 10.0}


class TestCount(FedMFConformance):
    options = {"batch_size": 16, "dim": 8, "aggregation": "count", "local_epochs": 2}


def test_the_item_step_is_scaled_only_under_the_mean():
    config = method_named("fedmf").config
    assert config("tiny", {"aggregation": "sum", "learning_rate": 0.3}).item_rate(60) == pytest.approx(0.3)
    scaled = config("tiny", {"aggregation": "mean", "learning_rate": 0.1, "item_rate_factor": 10})
    assert scaled.item_rate(60) == pytest.approx(0.1 * 60 * 10)
