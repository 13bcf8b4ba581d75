import pytest
import torch

from confed.models.distributions import SMALLEST
from confed.privacy.gaussian import GaussianMechanism
from confed.silos.exchange import Exchange

ROWS = {"mean": torch.randn(6, 4), "deviation": torch.rand(6, 4), "secret": torch.ones(6, 4)}


def test_only_what_was_declared_leaves():
    assert set(Exchange(("mean", "deviation")).protect(ROWS)) == {"mean", "deviation"}
    assert torch.equal(Exchange(("mean",)).protect(ROWS)["mean"], ROWS["mean"])


def test_a_person_is_clipped_as_a_whole():
    exchange = Exchange(("mean", "deviation"), GaussianMechanism(0.5, 1e-12))
    sent = exchange.protect(ROWS, 0)
    length = torch.cat([sent["mean"], sent["deviation"]], dim=1).norm(dim=1)
    assert (length <= 0.5 + 1e-4).all()


def test_noise_never_makes_a_deviation_negative():
    sent = Exchange(("mean", "deviation"), GaussianMechanism(1.0, 50.0)).protect(ROWS, 0)
    assert sent["deviation"].min() >= SMALLEST
    assert sent["mean"].min() < 0


def test_the_note_is_empty_without_noise():
    assert Exchange(("mean",)).note({"a": ROWS}) == {}
    note = Exchange(("mean",), GaussianMechanism(1.0, 0.5)).note({"a": ROWS})
    assert note["noise"]["a"]["noise_deviation"] == pytest.approx(0.5)
