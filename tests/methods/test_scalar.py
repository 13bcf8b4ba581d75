import pytest
import torch
from benchmarks.plain import PlainFederation, PlainStep
from torch import nn

import confed
from tests.oracle import Oracle, OracleConformance
from tests.realdata import require


class PlainScalar(nn.Module):
    def __init__(self, items):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(items, 1))

    def forward(self, item):
        return self.value[item, 0]


class TestScalar(OracleConformance):
    method = "scalar"
    options = {"batch_size": 16}

    def oracle(self, config, items):
        step = PlainStep({"value": config.learning_rate})
        return Oracle(
            PlainFederation(PlainScalar(items), (step,), config.local_epochs, config.batch_size),
            names={"items": "value"},
            merge={},
        )

    def test_nothing_travels_but_the_loss(self):
        self.check_that_only_the_loss_travels()


@pytest.mark.parametrize(("protocol", "low", "high"), [("paper", 90.0, 100.0), ("strict", 0.0, 12.0)])
def test_canary(protocol, low, high, tmp_path):
    """decisions.md "Checks": a model that learns nothing passes every published figure under `paper`, and none else."""
    run = confed.run("scalar", require("ml-100k"), protocol=protocol, rounds=50, eval_every=50, out=tmp_path)
    assert low <= run.metrics["hr@10"] <= high
