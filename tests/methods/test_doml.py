import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.registry import METHODS
from confed.runs.settings import resolve
from tests.methods.two_domains import TwoDomainConformance

SMALL = {"dim": 6, "batch_size": 32, "learning_rate": 0.01, "init_deviation": 0.3}
FEW = {"negatives": 15, "more_negatives": (), "cutoffs": (5, 10), "select_metric": "mrr@10"}


class TestDOML(TwoDomainConformance):
    method = "doml"
    options = SMALL


def test_defaults_are_those_of_the_specification():
    config = METHODS["doml"].config("douban", {})
    told = {"dim": 128, "learning_rate": 0.001, "batch_size": 1024, "train_negatives": 4, "transfer": 0.03}
    assert config.model_dump(include=set(told)) == told
    assert (config.orthogonality, config.dropout, METHODS["doml"].rounds) == (1e-6, 0.1, 100)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"transfer": 1.5}, "transfer = 1.5"), ({"dropout": 1.0}, "dropout = 1.0"), ({"alignment": 0.1}, "alignment")],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(ConfedError, match=message):
        resolve("doml", "tiny", protocol="warm", options=options)


@pytest.mark.parametrize("protocol", ["warm", "cold"])
def test_a_run_from_data_to_recommendations(protocol, tmp_path):
    data = synthetic_domains(domains=2, users=60, items=60, interactions_per_user=10, categories=5, overlap=1.0, seed=3)
    options = {"dim": 4, "batch_size": 64, **FEW}
    run = confed.run("doml", data, rounds=2, protocol=protocol, options=options, out=tmp_path)
    assert len(run.lines) == 2 and set(run.summary["views"]) == {"global"}
    found = run.recommend(data["b"].users[0], 5, domain="b")
    assert len(found) == 5 and all(one.item in data["b"].items for one in found)


def test_three_domains_are_too_many(tmp_path):
    three = synthetic_domains(users=24, items=60, interactions_per_user=10, categories=5)
    with pytest.raises(ConfedError, match="doml is for two domains"):
        confed.run("doml", three, rounds=1, options=FEW, out=tmp_path)
