"""What noise promises: against the formula of Balle and Wang, and against dp-accounting's own examples."""

import importlib.util
import math

import dp_accounting
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import confed
from confed.errors import ConfedError
from confed.privacy.accounting import CLIENT, ROW, accounted, epsilon, in_words


def balle_and_wang(sensitivity, deviation, delta):
    """Theorem 8 of "Improving the Gaussian Mechanism for Differential Privacy" (ICML 2018), solved for ε."""
    ratio = sensitivity / deviation

    def excess(promised):
        worse = math.exp(promised + norm.logcdf(-ratio / 2 - promised / ratio))
        return norm.cdf(ratio / 2 - promised / ratio) - worse - delta

    most = 1.0
    while excess(most) > 0:
        most *= 2
    return brentq(excess, 0.0, most, xtol=1e-12)


@pytest.mark.parametrize("multiplier", [0.05, 0.1, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("rounds", [1, 50])
def test_the_formula(multiplier, rounds):
    """Rows in a ball of radius 1 are 2 apart; k independent looks at one of them are one look with √k less noise."""
    expected = balle_and_wang(2.0, multiplier / math.sqrt(rounds), 1e-5)
    assert epsilon(multiplier, rounds) == pytest.approx(expected, rel=1e-6)


def test_the_classical_bound_was_wrong_where_it_does_not_hold():
    classical = 2 * math.sqrt(2 * math.log(1.25e5)) / 0.1
    assert classical == pytest.approx(96.9, abs=0.1)
    assert epsilon(0.1) == pytest.approx(284.4, abs=0.1)
    assert epsilon(0.1, 50) > 5_000


@pytest.mark.parametrize(("multiplier", "rounds"), [(4.0, 1), (8.0, 10)])
def test_the_accountant_of_any_mechanism_agrees(multiplier, rounds):
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(multiplier / 2), rounds)
    assert epsilon(multiplier, rounds) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("promised", [0.1, 1.0, 10.0])
def test_there_and_back(promised):
    """As dp-accounting tests itself: the noise for an ε has that ε."""
    deviation = dp_accounting.get_sigma_gaussian(promised, 1e-5)
    assert epsilon(2 * deviation) == pytest.approx(promised, rel=1e-6)


@given(st.floats(1e-6, 1e15), st.integers(1, 10_000))
def test_every_noise_has_its_number(multiplier, rounds):
    found = epsilon(multiplier, rounds)
    assert math.isfinite(found) and found >= 0


def test_unit_and_delta_are_named():
    row = accounted({"clip": 2.0, "noise_deviation": 1.0, "unit": ROW, "clipped_share": 0.5}, 50)
    assert "for one person's row in one company's upload" in in_words(row)
    assert f"ε = {epsilon(0.5):.3g} in one round, ε = {epsilon(0.5, 50):.3g} in all 50, at δ = 1e-05" in in_words(row)
    assert "as if it was sent in every round" in in_words(row)
    assert "for all that one client sends" in in_words(
        accounted({"clip": 2.0, "noise_deviation": 1.0, "unit": CLIENT}, 1)
    )


@pytest.mark.parametrize(
    ("method", "data"), [("fedmf", "synthetic:users=40,items=80"), ("fppdm", "synthetic:domains=2,users=40,items=60")]
)
def test_without_the_package_noise_is_refused_before_anything_starts(method, data, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "confed.privacy.accounting.find_spec",
        lambda name: None if name == "dp_accounting" else importlib.util.find_spec(name),
    )
    options = {"upload_clip": 1.0, "upload_noise": 1.0, "dim": 4}
    with pytest.raises(ConfedError, match=r"pip install 'confed\[privacy\]'"):
        confed.run(method, data, rounds=1, options=options, folder=tmp_path / "run", notice=lambda text: None)
    assert not (tmp_path / "run").exists()
