import itertools

import numpy as np
import pytest

from confed.evaluation.significance import paired


def test_p_equals_the_exact_sign_flip_test_on_few_users():
    one, other = np.array([0.9, 0.7, 0.8, 0.1, 0.6]), np.array([0.2, 0.3, 0.1, 0.3, 0.2])
    difference = one - other
    signs = list(itertools.product((-1, 1), repeat=5))
    exact = np.mean([abs((difference * s).mean()) >= abs(difference.mean()) - 1e-12 for s in signs])
    found = paired([one], [other], draws=20_000)
    assert found.mean == pytest.approx(difference.mean())
    assert found.p == pytest.approx(exact, abs=0.01)


def test_no_difference_is_not_significant_and_a_large_one_is():
    rng = np.random.default_rng(0)
    base = [rng.random(400) for _ in range(3)]
    noise = [b + rng.normal(0, 0.1, 400) for b in base]
    assert paired(noise, base, draws=2000).p > 0.01
    better = [b + 0.05 + rng.normal(0, 0.1, 400) for b in base]
    found = paired(better, base, draws=2000)
    assert found.p < 0.01 and found.low > 0 and found.low < 0.05 < found.high + 0.02


def test_seeds_are_averaged_before_users_are_compared():
    """A gain of one seed that another seed takes back is no gain."""
    one = [np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])]
    other = [np.full(4, 0.5), np.full(4, 0.5)]
    found = paired(one, other, draws=100)
    assert found.mean == 0.0 and found.p == 1.0
