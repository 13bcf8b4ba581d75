import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.registry import METHODS
from confed.runs.settings import resolve
from tests.methods.test_doml import FEW
from tests.methods.two_domains import TwoDomainConformance

SMALL = {"dim": 4, "batch_size": 32, "learning_rate": 0.01, "init_deviation": 0.3}


class TestCDRIB(TwoDomainConformance):
    method = "cdrib"
    options = SMALL


def test_defaults_are_those_of_the_specification():
    config = METHODS["cdrib"].config("douban", {})
    told = {"dim": 128, "learning_rate": 0.001, "batch_size": 1024, "dropout": 0.3, "weight_decay": 5e-4, "layers": 3}
    assert config.model_dump(include=set(told)) == told
    assert (config.bottleneck, config.train_negatives, config.init_deviation) == (1.5, 1, 1.0)
    assert METHODS["cdrib"].rounds == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [({"known_by": "own"}, "known_by = 'own'"), ({"dropout": 1.0}, "dropout = 1.0"), ({"alignment": 1}, "alignment")],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises(ConfedError, match=message):
        resolve("cdrib", "tiny", protocol="warm", options=options)


@pytest.mark.parametrize("protocol", ["warm", "cold"])
def test_a_run_from_data_to_recommendations(protocol, tmp_path):
    data = synthetic_domains(domains=2, users=60, items=60, interactions_per_user=10, categories=5, overlap=1.0, seed=3)
    run = confed.run("cdrib", data, rounds=2, protocol=protocol, options={**SMALL, **FEW}, out=tmp_path)
    assert len(run.recommend(data["b"].users[0], 5, domain="b")) == 5
