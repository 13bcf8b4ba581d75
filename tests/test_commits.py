import math

import pytest
from benchmarks.commits import interval


def test_the_interval_of_fifteen_pairs_leaves_out_three_on_either_side():
    """P(fewer than 4 of 15 on one side) twice is 0.035, fewer than 5 would be 0.118."""
    assert interval([*range(15)]) == (3, 11)
    assert interval([*reversed(range(15))]) == (3, 11)


@pytest.mark.parametrize("pairs", [6, 9, 15, 40])
def test_the_median_lies_outside_as_rarely_as_it_says(pairs):
    low, high = interval([*range(pairs)])
    assert low + high == pairs - 1
    assert 2 * sum(math.comb(pairs, k) for k in range(int(low) + 1)) / 2**pairs <= 0.05


def test_a_few_pairs_give_all_they_have():
    assert interval([1.0, 2.0]) == (1.0, 2.0)
    assert interval([1.0]) == (1.0, 1.0)
