"""Rounds without federation: every domain by itself, or all of them in one model (models/trainer.py)."""

import numpy as np
import pytest
import torch

from confed.data.interactions import ONLY
from confed.errors import DivergedError
from confed.evaluation.domains import Examination
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.models.trainer import OnePlace
from confed.testing import MethodConformance, Recorder, assert_equal_states, tiny, tiny_domains


def trainer(method, cut, judges=None, **options):
    chosen = method_named(method)
    return chosen.trainer(Terms(chosen.config(None, options), seed=3, dtype="float64"), cut, judges or {})


class TestEveryDomainByItself(MethodConformance):
    """A central method on several domains trains each as it would alone."""

    method = "lightgcn"
    options = {"dim": 6, "batch_size": 64, "learning_rate": 0.01}
    several = True

    def test_a_domain_is_trained_as_it_would_be_alone(self):
        together = self.trained()
        assert isinstance(together, OnePlace) and list(together.models) == ["a", "b", "c"]
        for name, model in together.models.items():
            alone = self.trainer().models[name]
            for number in (1, 2):
                alone.train(number)
            assert_equal_states(model.state(), alone.state(), tolerance=0)


class TestOneShot(MethodConformance):
    method = "popularity"
    seeded = False
    several = True

    def test_it_has_no_loss(self):
        assert self.trainer().round(1).loss is None


def test_popularity_counts_in_every_domain():
    cut = tiny_domains.cut()
    examination = Examination.of(cut, tiny_domains.TINY_WARM, 0)
    done = trainer("popularity", cut, examination.judges).round(1, ["global"])
    assert set(examination.grading.result(done.tallies["global"]).metrics("test")["domains"]) == {"a", "b", "c"}


def test_a_loss_that_explodes_names_its_domain_if_there_are_several():
    options = {"dim": 6, "batch_size": 16, "learning_rate": 1e15}
    with pytest.raises(DivergedError, match=r"^domain a: the loss is \d.*: lower `learning_rate`"):
        trainer("mf", tiny_domains.cut(), **options).round(1)
    with pytest.raises(DivergedError, match=r"^the loss is \d.*: lower `learning_rate`"):
        trainer("mf", tiny.cut(), **options).round(1)


def test_one_model_of_one_domain_has_no_name_in_the_state():
    alone, several = trainer("mf", tiny.cut(), dim=4), trainer("mf", tiny_domains.cut(), dim=4)
    assert list(alone.models) == [ONLY]
    assert alone.state().keys() == alone.models[ONLY].state().keys()
    assert several.state().keys() == {f"{domain}/{name}" for domain in "abc" for name in alone.state()}


def test_one_model_of_all_domains_is_examined_in_each():
    cut = tiny_domains.cut().take(np.array([0, 1]))
    recorders = Recorder.of(cut)
    joint = trainer("etl", cut, recorders, dim=6)
    assert list(joint.models) == [ONLY]
    done = joint.round(1, ["global"])
    assert set(done.tallies["global"]) == {"a", "b"}
    for recorder in recorders.values():
        assert bool(torch.isfinite(recorder.scores).all())


@pytest.mark.parametrize(("method", "participants"), [("mf", 3), ("popularity", 3)])
def test_who_takes_part(method, participants):
    """Of several models so many; of one, the people it learns from."""
    assert trainer(method, tiny_domains.cut()).round(1).participants == participants
    assert trainer(method, tiny.cut()).round(1).participants == tiny.USERS


def test_nothing_travels():
    done = trainer("popularity", tiny.cut()).round(1)
    assert (done.upload_bytes, done.download_bytes, done.notes, done.tallies) == (0, 0, {}, {})
