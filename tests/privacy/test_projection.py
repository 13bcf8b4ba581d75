import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from confed.privacy.projection import ENTRY, Projection, in_words


def composed(epsilon, delta, times, whole):
    """The smallest ε of `times` mechanisms at probability `whole`, on the grid of the optimal theorem (Kairouz, Oh and
    Viswanath 2015).
    """
    for i in range(times // 2, -1, -1):
        lost = (
            sum(
                math.comb(times, k) * (math.exp((times - k) * epsilon) - math.exp((times - 2 * i + k) * epsilon))
                for k in range(i)
            )
            / (1 + math.exp(epsilon)) ** times
        )
        if 1 - (1 - delta) ** times * (1 - lost) <= whole:
            return (times - 2 * i) * epsilon
    return math.inf


@pytest.mark.parametrize(("columns", "epsilon", "delta"), [(1, 0.5, 1e-3), (4, 0.5, 0.05), (10, 0.25, 0.1)])
def test_all_columns_promise_what_the_optimal_theorem_says(columns, epsilon, delta):
    ours = Projection(columns, epsilon, delta)
    least = composed(epsilon, ours.column_delta, columns, delta)
    assert least - 2 * epsilon <= ours.epsilon <= least + 1e-9
    assert ours.epsilon <= columns * epsilon


def test_the_noise_is_that_of_the_paper():
    ours = Projection(204, 0.25, 1 / 2000)
    delta = 1 / 2000 / 408
    assert ours.noise == pytest.approx(1 / (math.sqrt(0.25 / (2 * math.log(4 / delta)) + 0.25) - 0.5))
    assert Projection(204, 64.0, 1 / 2000).noise < 1 < Projection(204, 32.0, 1 / 2000).noise


@pytest.mark.parametrize("epsilon", [0.25, 4.0, 64.0])
def test_a_column_of_one_row_hides_its_entry(epsilon):
    """Of one person with one item a column is a normal number: what its two variances tell is known exactly."""
    ours = Projection(3, epsilon, 0.1)
    for entries in ((0.0, 1.0), (1.0, 0.0), (1.0, 2.0), (5.0, 4.0)):
        one, other = (entry**2 + ours.noise**2 for entry in entries)
        assert told(one, other, epsilon) <= ours.column_delta


def told(one, other, epsilon):
    """The least δ of that ε: P(loss > ε) under the first normal distribution, less e^ε times that under the second."""
    slope = (1 / other - 1 / one) / 2
    bound = (epsilon - 0.5 * math.log(other / one)) / slope  # of y², which is one of chi-square
    tail = chi2.sf if slope > 0 else chi2.cdf
    return tail(bound / one, 1) - math.exp(epsilon) * tail(bound / other, 1)


@pytest.mark.parametrize("epsilon", [0.25, 4.0])
def test_the_entry_that_is_told_most_is_near_the_noise_and_a_quarter_of_the_noise_tells_it(epsilon):
    ours = Projection(1, epsilon, 2e-6)

    def most_told(noise):
        entries = noise * np.linspace(0.1, 10, 400)
        return max(told((x + 1) ** 2 + noise**2, x**2 + noise**2, epsilon) for x in entries)

    assert most_told(ours.noise) <= ours.column_delta == 1e-6
    assert most_told(0.25 * ours.noise) > ours.column_delta


@pytest.mark.parametrize("epsilon", [0.25, 4.0, 64.0])
def test_a_column_of_many_rows_hides_any_entry(epsilon):
    rng = np.random.default_rng(0)
    ours = Projection(1, epsilon, 0.2)
    for _ in range(20):
        table = rng.integers(0, 2, (4, 3)).astype(float)
        changed = table.copy()
        changed[0, 0] = 1 - changed[0, 0]
        one, other = (x @ x.T + ours.noise**2 * np.eye(4) for x in (table, changed))
        drawn = rng.multivariate_normal(np.zeros(4), one, size=20_000)
        loss = 0.5 * np.einsum("ni,ij,nj->n", drawn, np.linalg.inv(other) - np.linalg.inv(one), drawn)
        loss += 0.5 * (np.linalg.slogdet(other)[1] - np.linalg.slogdet(one)[1])
        assert (loss > epsilon).mean() <= ours.column_delta


@pytest.mark.parametrize("columns_of_table", [2, 30])
def test_what_is_released_has_noise_in_all_directions(columns_of_table):
    """YYᵀ is XXᵀ + w², also where X has fewer columns than rows."""
    ours = Projection(200_000, 500_000.0, 0.1)
    table = torch.from_numpy(np.random.default_rng(1).integers(0, 2, (6, columns_of_table)).astype(float))
    released = ours.released(table @ ours.drawn(columns_of_table, 7, "a"), 7, "a")
    expected = table @ table.T + ours.noise**2 * torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(released @ released.T, expected, rtol=0.02, atol=0.03)


def test_draws_are_of_their_key():
    ours = Projection(3, 1.0, 0.1)
    rows = torch.ones(2, 3, dtype=torch.float64)
    assert torch.equal(ours.drawn(4, 0, "a"), ours.drawn(4, 0, "a"))
    assert not torch.equal(ours.drawn(4, 0, "a"), ours.drawn(4, 0, "b"))
    assert not torch.equal(ours.released(rows, 0, "a"), ours.released(rows, 1, "a"))


def test_the_promise_in_words():
    promise = Projection(204, 0.25, 1 / 2000).promise()
    assert promise["unit"] == ENTRY and promise["epsilon"] < 204 * 0.25
    assert f"ε = {promise['epsilon']:.3g} at δ = 0.0005" in in_words(promise)
