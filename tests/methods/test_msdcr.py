import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.registry import METHODS
from confed.runs.settings import resolve
from tests.methods.test_doml import FEW
from tests.methods.two_domains import TwoDomainConformance

SMALL = {"dim": 4, "batch_size": 32, "learning_rate": 0.01, "init_deviation": 0.3}


class TestMSDCR(TwoDomainConformance):
    method = "msdcr"
    options = SMALL
    threads = 1e-12


def test_defaults_are_those_of_the_specification():
    config = METHODS["msdcr"].config("douban", {})
    told = {"dim": 32, "learning_rate": 0.001, "batch_size": 256, "weight_decay": 0.001, "history": 12}
    assert config.model_dump(include=set(told)) == told
    assert (config.judging, METHODS["msdcr"].rounds) == (1 / 256, 50)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"history": 0}, "history = 0"), ({"dim": 0}, "dim = 0"), ({"alignment": 1}, "alignment")],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(ConfedError, match=message):
        resolve("msdcr", "tiny", protocol="warm", options=options)


@pytest.mark.parametrize("protocol", ["warm", "cold"])
def test_a_run_from_data_to_recommendations(protocol, tmp_path):
    data = synthetic_domains(domains=2, users=60, items=60, interactions_per_user=10, categories=5, overlap=1.0, seed=3)
    run = confed.run("msdcr", data, rounds=2, protocol=protocol, options={**SMALL, **FEW}, out=tmp_path)
    assert len(run.recommend(data["b"].users[0], 5, domain="b")) == 5
