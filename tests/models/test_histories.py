import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.models.histories import cyclic, places, shuffled
from confed.ragged import Ragged
from confed.random import Stream

lists = st.lists(st.lists(st.integers(0, 20), max_size=6, unique=True), min_size=1, max_size=6)


@given(rows=lists)
def test_shuffled_rows_have_the_same_values(rows):
    of = Ragged.of(rows)
    found = shuffled(of, Stream.of(0, "h"))
    assert [sorted(found[row]) for row in range(len(of))] == [sorted(row) for row in rows]


def test_orders_differ_between_streams():
    of = Ragged.of([range(50)])
    assert not np.array_equal(shuffled(of, Stream.of(0, "h", 1)).values, shuffled(of, Stream.of(0, "h", 2)).values)


@given(rows=lists, length=st.integers(1, 8), data=st.data())
def test_a_history_goes_round_and_has_nothing_twice(rows, length, data):
    of = Ragged.of(rows)
    which = np.array(data.draw(st.lists(st.integers(-1, len(rows) - 1), min_size=1, max_size=5)))
    begin = np.array([data.draw(st.integers(0, 9)) for _ in which])
    found = cyclic(of, which, begin, length)
    for n, row in enumerate(which.tolist()):
        values = rows[row] if row >= 0 else []
        expected = [values[(begin[n] + k) % len(values)] for k in range(min(length, len(values)))]
        assert found.items[n][found.there[n]].tolist() == expected


def test_places_and_leaving_out():
    of = Ragged.of([[4, 5, 6], [], [7]])
    assert places(of).tolist() == [0, 1, 2, 0]
    history = cyclic(of, np.array([0, 2]), np.array([1, 0]), 3).without(np.array([6, 7]))
    assert history.items[0][history.there[0]].tolist() == [5, 4]
    assert not history.there[1].any()
    assert history[torch.tensor([1])].there.shape == (1, 3)
