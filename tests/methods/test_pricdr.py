import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.registry import METHODS
from confed.runs.settings import resolve
from tests.methods.test_doml import FEW
from tests.methods.two_domains import TwoDomainConformance

SMALL = {"dim": 6, "batch_size": 8, "learning_rate": 0.01, "projected": 8, "column_epsilon": 50.0}


class TestPriCDR(TwoDomainConformance):
    method = "pricdr"
    options = SMALL


def test_defaults_are_those_of_the_specification():
    config = METHODS["pricdr"].config("douban", {})
    told = {"dim": 100, "learning_rate": 0.001, "batch_size": 128, "dropout": 0.5, "weight_decay": 0.001}
    assert config.model_dump(include=set(told)) == told
    assert (config.alignment, config.projected, config.column_epsilon) == (100.0, 204, 0.25)
    assert METHODS["pricdr"].rounds == 300


@pytest.mark.parametrize(
    ("options", "message"),
    [({"column_epsilon": 0.0}, "column_epsilon = 0"), ({"scale": "two"}, "scale = 'two'"), ({"layers": 2}, "layers")],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(ConfedError, match=message):
        resolve("pricdr", "tiny", protocol="warm", options=options)


@pytest.mark.parametrize("protocol", ["warm", "cold"])
def test_a_run_from_data_to_what_was_promised(protocol, tmp_path):
    data = synthetic_domains(domains=2, users=60, items=60, interactions_per_user=10, categories=5, overlap=1.0, seed=3)
    run = confed.run("pricdr", data, rounds=2, protocol=protocol, options={**SMALL, **FEW}, out=tmp_path)
    assert len(run.recommend(data["b"].users[0], 5, domain="b")) == 5
    promise = run.summary["release"]
    people = 60 - run.summary["left_out"]
    assert promise["delta"] == pytest.approx(1 / people) and promise["columns"] == 8
    assert 50.0 < promise["epsilon"] <= 8 * 50.0
    assert "What the domains gave each other" in run.report().read_text("utf-8")
