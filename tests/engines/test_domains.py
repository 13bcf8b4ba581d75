import pytest

from confed.engines.domains import Apart
from confed.errors import DivergedError
from confed.evaluation.domains import DomainEvaluator
from confed.methods.popularity import Popularity
from tests import tiny_domains
from tests.conformance import SEED, assert_equal_states
from tests.silo_conformance import DomainConformance


class TestEveryDomainByItself(DomainConformance):
    """A central method on several domains trains each as it would alone."""

    method = "lightgcn"
    options = {"dim": 6, "batch_size": 64, "learning_rate": 0.01}

    def test_a_domain_is_trained_as_it_would_be_alone(self):
        together = self.trained()
        assert isinstance(together, Apart)
        for name, trainer in together.trainers.items():
            alone = self.trainer().trainers[name]
            for number in (1, 2):
                alone.round(number, {})
            assert_equal_states(trainer.state(), alone.state(), tolerance=0)


class TestOneShot(DomainConformance):
    method = "popularity"
    seeded = False

    def test_it_has_no_loss(self):
        assert self.trainer().round(1, {}).loss is None


def test_popularity_counts_in_every_domain():
    cut = tiny_domains.cut()
    trainers = {name: Popularity().trainer(None, part.training, SEED, "float64") for name, part in cut.parts.items()}
    card = DomainEvaluator(cut, tiny_domains.TINY_WARM, 0).scorecard()
    Apart(trainers).round(1, {"global": card})
    assert set(card.result().metrics("test")["domains"]) == {"a", "b", "c"}


@pytest.mark.parametrize("named", ["fppdm", "fppdm++", "etl-fc"])
def test_a_loss_that_explodes_names_its_domain(named):
    class Exploding(DomainConformance):
        method = named
        options = {"dim": 6, "batch_size": 16, "learning_rate": 1e200, "local_epochs": 3}

    with pytest.raises(DivergedError, match=r"domain a: round 1.*: .*learning_rate"):
        Exploding().trained(1)
