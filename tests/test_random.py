import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.random import Stream, fingerprint, keyed, standard_normal


def test_draws_are_pinned_across_versions():
    """A change of the generator would silently change every result: these values are fixed for ever."""
    stream = Stream.of(7, "negatives", 3)
    assert stream.bits([0, 1], [0, 5]).tolist() == [90297889919460863, 5360215768454340677]
    assert fingerprint(7, "negatives", 3) == 18088401359768400854


def test_each_part_of_the_key_matters():
    reference = Stream.of(0, "a", 1).bits(np.arange(50), 0)
    others = [Stream.of(1, "a", 1), Stream.of(0, "b", 1), Stream.of(0, "a", 2)]
    assert all((reference != other.bits(np.arange(50), 0)).all() for other in others)
    assert len({*reference.tolist(), *Stream.of(0, "a", 1).bits(np.arange(50), 1).tolist()}) == 100


def test_coins_are_those_of_uniform():
    stream, clients = Stream.of(3, "coins", 2), np.array([4, 0, 17])
    drawn = stream.uniform(clients[:, None], np.arange(1000)[None, :])
    for least in (0.0, 0.2, float(drawn[1, 5]), 1.0):
        assert np.array_equal(stream.at_least(least, clients, 1000), drawn >= least)


def test_integers_are_uniform():
    draws = Stream.of(0, "u").integers(np.arange(1000)[:, None], np.arange(200), 20)
    counts = np.bincount(draws.reshape(-1), minlength=20)
    expected = draws.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # 99.9 % quantile with 19 degrees of freedom


def test_distinct_is_uniform_over_ordered_pairs():
    """All 12 ordered pairs of 4 numbers are equally likely: uniform without replacement, in random order."""
    n = 60_000
    picks = Stream.of(0, "d").distinct(np.arange(n), np.zeros(n, dtype=np.int64), np.full(n, 4), 2)
    pairs, counts = np.unique(picks, axis=0, return_counts=True)
    assert len(pairs) == 12
    assert ((counts - n / 12) ** 2 / (n / 12)).sum() < 31.3  # 99.9 % quantile with 11 degrees of freedom


@given(st.integers(0, 2**31), st.integers(1, 30), st.data())
def test_distinct_numbers_are_distinct_and_in_range(seed, size, data):
    count = data.draw(st.integers(1, size))
    clients = np.arange(5)
    picks = Stream.of(seed, "d").distinct(clients, clients, np.full(5, size), count)
    assert all(len(set(row)) == count for row in picks.tolist())
    assert picks.min() >= 0 and picks.max() < size


@pytest.mark.parametrize("count", [1, 4, 60, 256])
def test_few_are_drawn_from_a_list_of_what_is_left(count):
    """The same numbers whatever draws them: by hand, one client after another."""
    stream = Stream.of(5, "few")
    picks = stream.distinct(np.array([3, 10**12]), np.array([0, 7]), np.array([300, 256]), count)
    for row, (client, slot, size) in zip(picks, [(3, 0, 300), (10**12, 7, 256)], strict=True):
        left = list(range(size))
        assert row.tolist() == [left.pop(stream.integers(client, slot * count + j, size - j)[0]) for j in range(count)]


def test_many_are_the_first_different_ones_of_a_sequence():
    stream = Stream.of(5, "many")
    picks = stream.distinct(np.array([3, 8]), np.array([0, 2]), np.array([300, 4000]), 300)
    for row, (client, slot, size) in zip(picks, [(3, 0, 300), (8, 2, 4000)], strict=True):
        sequence = stream.integers(client, ((slot + 1) << 32) + np.arange(10_000), size)
        assert row.tolist() == list(dict.fromkeys(sequence.tolist()))[:300]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8))
def test_shuffled_rows_are_permutations_that_do_not_depend_on_company(lengths):
    stream = Stream.of(3, "shuffle")
    clients = np.arange(len(lengths)) * 7
    order = stream.shuffled(clients, np.array(lengths))
    for row, client, length in zip(order, clients, lengths, strict=True):
        assert sorted(row[:length].tolist()) == list(range(length))
        alone = stream.shuffled(np.array([client]), np.array([length]))
        assert alone[0, :length].tolist() == row[:length].tolist()


def test_too_long_rows_are_refused():
    with pytest.raises(ValueError, match="shuffled"):
        Stream.of(0, "s").shuffled(np.array([0]), np.array([1 << 24]))


def test_order_is_a_permutation():
    assert sorted(Stream.of(0, "o").order(100).tolist()) == list(range(100))


def test_many_without_replacement():
    """Above 256 draws the first different numbers of a longer sequence: distinct, and a function of the key."""
    clients, slots = np.arange(40), np.zeros(40, dtype=np.int64)
    size = np.where(clients % 2, 300, 5000)
    picks = Stream.of(0, "many").distinct(clients, slots, size, 300)
    for row, most in zip(picks, size, strict=True):
        assert len(set(row.tolist())) == 300
        assert row.min() >= 0 and row.max() < most
    assert set(picks[1].tolist()) == set(range(300))
    again = Stream.of(0, "many").distinct(clients[5:6], slots[5:6], size[5:6], 300)
    assert again[0].tolist() == picks[5].tolist()
    other = Stream.of(0, "many").distinct(clients[:1], slots[:1] + 1, size[:1], 300)
    assert other[0].tolist() != picks[0].tolist()


def test_many_draws_are_uniform():
    n = 400
    zeros = np.zeros(n, dtype=np.int64)
    picks = Stream.of(1, "many").distinct(np.arange(n), zeros, np.full(n, 1000), 300)
    counts = np.bincount(picks.reshape(-1), minlength=1000)
    assert abs(counts.std() - np.sqrt(n * 0.3 * 0.7)) < 1.5
    assert abs(picks.mean() - 499.5) < 3
    assert abs(picks[:, 0].mean() - 499.5) < 45


def test_torchs_numbers_depend_on_their_key_and_on_nothing_else():
    like = torch.empty(3, 2)
    torch.manual_seed(1)
    first = standard_normal(like, keyed(0, "noise", 1))
    torch.manual_seed(2)
    torch.testing.assert_close(standard_normal(like, keyed(0, "noise", 1)), first, rtol=0, atol=0)
    assert not torch.equal(standard_normal(like, keyed(0, "noise", 2)), first)
    assert torch.equal(standard_normal(like.double(), keyed(0, "noise", 1)).float(), first)
