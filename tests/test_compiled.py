import numpy as np

from confed.compiled import compiled


@compiled
def _total(values):
    total = 0.0
    for value in values:
        total += value
    return total


def test_a_compiled_loop_sums_and_respects_infinities():
    assert _total(np.arange(10.0)) == 45.0
    assert np.isnan(_total(np.array([np.inf, -np.inf])))
    assert np.isinf(_total(np.array([1.0, np.inf])))
