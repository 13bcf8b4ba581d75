import pytest
import torch

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.central import JointMethod
from confed.methods.etl import ETL, ETLF, ETLFC
from confed.methods.registry import METHODS
from confed.methods.silo import SiloMethod
from confed.models.autoencoder import AutoencoderSilo
from confed.runs.settings import resolve
from confed.testing import CompanyConformance, FederatedConformance, assert_equal_states
from tests.methods.two_domains import TwoDomainConformance

SMALL = {"dim": 6, "batch_size": 8, "local_epochs": 2, "learning_rate": 0.01, "init_deviation": 0.3}
FEW = {"negatives": 15, "more_negatives": (), "cutoffs": (5, 10)}


class TestETLF(CompanyConformance):
    method = "etl-f"
    options = {**SMALL, "alignment": 0.5}
    uploads = ("mean", "deviation")

    def test_the_first_round_knows_no_target(self):
        weak, strong = (self.trained(1, options={"alignment": w}) for w in (0.0, 5.0))
        assert_equal_states(weak.state(), strong.state(), tolerance=0)
        weak, strong = (self.trained(2, options={"alignment": w}) for w in (0.0, 5.0))
        assert any(not torch.equal(weak.state()[name], value) for name, value in strong.state().items())


class TestAlone(FederatedConformance):
    """Companies that exchange nothing."""

    method = "etl-f"
    options = {**SMALL, "variant": "alone"}

    def test_nothing_travels(self):
        trainer = self.federation()
        done = trainer.round(1)
        assert (done.upload_bytes, done.download_bytes) == (0, 0)
        assert trainer.views == ("local",)
        assert not trainer.server.strategy.state()

    def test_it_is_etl_f_without_alignment(self):
        alone, apart = self.trained(3), TestETLF().trained(3, options={"alignment": 0.0})
        assert_equal_states(alone.federation.state(), apart.federation.state(), tolerance=0)


class TestETLFC(CompanyConformance):
    method = "etl-fc"
    options = {**SMALL, "clusters": 3}
    uploads = ("mean", "deviation")

    def test_without_its_weight_it_is_etl_f(self):
        full = self.trained()
        self.options = SMALL
        plus = self.trained(options={"clustering": 0.0})
        self.method = "etl-f"
        same = self.trained()
        assert_equal_states(plus.state(), same.state(), tolerance=0)
        assert any(not torch.equal(full.state()[name], value) for name, value in same.state().items())

    def test_co_clustering_every_other_batch(self):
        often, rarely = (self.trained(options={"cluster_every": every}) for every in (1, 2))
        assert any(not torch.equal(often.state()[name], value) for name, value in rarely.state().items())


class TestETL(TwoDomainConformance):
    method = "etl"
    options = {key: value for key, value in SMALL.items() if key != "local_epochs"}


def test_registered():
    assert isinstance(METHODS["etl-f"], ETLF) and isinstance(METHODS["etl-fc"], ETLFC)
    assert isinstance(METHODS["etl"], ETL)
    assert isinstance(METHODS["etl-f"], SiloMethod) and isinstance(METHODS["etl"], JointMethod)
    assert METHODS["etl"].rounds == 300


@pytest.mark.parametrize("name", ["etl", "etl-f", "etl-fc"])
def test_defaults_are_those_of_the_papers(name):
    config = METHODS[name].config("douban", {})
    told = {"dim": 200, "learning_rate": 0.001, "batch_size": 256, "dropout": 0.5, "weight_decay": 0.001}
    assert config.model_dump(include=set(told)) == told
    if name != "etl":
        assert (config.local_epochs, config.alignment) == (5, 0.05)
    if name == "etl-fc":
        assert (config.clustering, config.clusters, config.entropy, config.coupling) == (0.07, 15, 0.05, 0.1)
        assert (config.pull.clustering, config.pull.co_clustering.clusters) == (0.07, 15)
    assert all(field.description for field in type(config).model_fields.values())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("etl-f", {"dropout": 1.0}, "dropout = 1.0"),
        ("etl-f", {"variant": "B"}, "variant = 'B'"),
        ("etl-fc", {"clusters": 0}, "clusters = 0"),
        ("etl", {"weight_decay": -1.0}, "weight_decay = -1.0"),
        ("etl", {"alignment": 0.1}, "alignment"),
    ],
)
def test_impossible_options_are_named(name, options, message):
    with pytest.raises(ConfedError, match=message):
        resolve(name, "tiny", protocol="warm", options=options)


@pytest.fixture(scope="module")
def data():
    return synthetic_domains(domains=2, users=24, items=60, interactions_per_user=10, groups=3, categories=5, seed=3)


@pytest.mark.parametrize("name", ["etl", "etl-f", "etl-fc"])
def test_a_run_from_data_to_recommendations(name, data, tmp_path):
    options = {"dim": 4, "batch_size": 8, **FEW}
    run = confed.run(name, data, rounds=2, options=options, out=tmp_path, all_views=name != "etl")
    assert len(run.lines) == 2
    assert set(run.summary["views"]) == ({"global"} if name == "etl" else {"local", "global"})
    found = run.recommend(data["b"].users[0], 5, domain="b")
    assert len(found) == 5 and all(one.item in data["b"].items for one in found)


def test_three_domains_are_too_many_for_etl(tmp_path):
    three = synthetic_domains(users=24, items=60, interactions_per_user=10, categories=5)
    with pytest.raises(ConfedError, match="etl is for two domains"):
        confed.run("etl", three, rounds=1, options=FEW, out=tmp_path)


def test_silos_are_autoencoders():
    case = TestETLF()
    silos = case.companies(case.federation()).silos.values()
    assert all(isinstance(silo, AutoencoderSilo) for silo in silos)
    assert all(silo.dim == SMALL["dim"] for silo in silos)
