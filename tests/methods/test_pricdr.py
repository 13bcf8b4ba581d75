import importlib.util

import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.registry import METHODS
from confed.runs.settings import resolve
from tests.methods.test_doml import FEW
from tests.methods.two_domains import TwoDomainConformance
from tests.models.test_etl import cut, without_matches

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
    [
        ({"column_epsilon": 1000.0}, "column_epsilon = 1000"),
        ({"scale": "two"}, "scale = 'two'"),
        ({"layers": 2}, "layers"),
    ],
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


def test_without_the_package_that_accounts_nothing_is_released(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "confed.privacy.accounting.find_spec",
        lambda name: None if name == "dp_accounting" else importlib.util.find_spec(name),
    )
    with pytest.raises(ConfedError, match=r"pip install 'confed\[privacy\]'.*take another method"):
        confed.run("pricdr", "synthetic:domains=2,users=40,items=60", rounds=1, options=SMALL, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_nobody_in_common_is_no_release():
    method = METHODS["pricdr"]
    assert method.released(method.config("tiny", SMALL), without_matches(cut())) == {}
