import math

import pytest
import torch

from confed.privacy.gaussian import GaussianMechanism


def test_rows_are_clipped_and_short_ones_are_left_alone():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=torch.float64)
    silent = GaussianMechanism(clip=1.0, multiplier=1e-12).protect(rows, 0)
    torch.testing.assert_close(silent, torch.tensor([[0.6, 0.8], [0.3, 0.4]], dtype=torch.float64))


def test_the_noise_has_the_deviation_that_is_reported():
    mechanism = GaussianMechanism(clip=2.0, multiplier=0.5)
    noise = mechanism.protect(torch.zeros(400, 100, dtype=torch.float64), "key")
    assert float(noise.std()) == pytest.approx(mechanism.deviation, rel=0.02)
    assert mechanism.deviation == 1.0
    assert abs(float(noise.mean())) < 0.02


def test_noise_is_a_function_of_its_key():
    mechanism, rows = GaussianMechanism(1.0, 1.0), torch.zeros(5, 4)
    assert torch.equal(mechanism.protect(rows, 1, "a"), mechanism.protect(rows, 1, "a"))
    assert not torch.equal(mechanism.protect(rows, 1, "a"), mechanism.protect(rows, 2, "a"))


def test_epsilon_by_hand():
    assert GaussianMechanism(1.0, 20.0).epsilon(1e-5) == pytest.approx(2 * math.sqrt(2 * math.log(125_000)) / 20)


def test_the_note_says_what_was_done():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    note = GaussianMechanism(1.0, 0.1).note(rows)
    assert note["clipped_share"] == 0.5
    assert note["mean_length"] == pytest.approx(2.75)
    assert note["noise_deviation"] == pytest.approx(0.1)
