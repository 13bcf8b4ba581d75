import numpy as np
import pytest
import torch
from torch.nn import functional

from confed.logistic import _exp, cross_entropy


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-6)])
@pytest.mark.parametrize("rows", [1, 7, 512, 513, 2000])
def test_the_mean_and_its_slopes_are_those_of_autograd(dtype, tolerance, rows):
    rng = np.random.default_rng(rows)
    scores, labels = (20 * rng.standard_normal(rows)).astype(dtype), (rng.random(rows) < 0.3).astype(dtype)
    logits = torch.from_numpy(scores.copy()).double().requires_grad_()
    expected = functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(labels).double())
    expected.backward()
    assert cross_entropy(scores, labels) == pytest.approx(float(expected), rel=tolerance)
    np.testing.assert_allclose(scores, logits.grad.numpy(), rtol=tolerance, atol=tolerance / rows)


@pytest.mark.parametrize("score", [-1e30, -900.0, 900.0, 1e30])
def test_no_score_overflows_and_wrong_ones_keep_their_slope(score):
    for label in (0.0, 1.0):
        scores = np.array([score])
        loss = cross_entropy(scores, np.array([label]))
        wrong = (score > 0) != bool(label)
        assert loss == pytest.approx(abs(score) if wrong else 0.0, abs=1e-200)
        assert abs(scores[0]) == pytest.approx(1.0 if wrong else 0.0, abs=1e-200)


def test_what_is_no_number_is_noticed():
    assert np.isnan(cross_entropy(np.array([np.nan, 1.0]), np.array([1.0, 0.0])))


def test_the_series_of_exp():
    x = -np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(0.0, 707.0, 20_001)])
    found = np.array([_exp(value) for value in x])
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-13)
    assert 0.0 <= _exp(-1e9) < 1e-300
