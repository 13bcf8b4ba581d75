import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from confed.ragged import Ragged

rows_of_items = st.lists(st.lists(st.integers(0, 19), max_size=12), min_size=1, max_size=6)


@given(rows_of_items)
def test_rows_come_back(rows):
    ragged = Ragged.of(rows)
    assert len(ragged) == len(rows)
    assert [ragged[r].tolist() for r in range(len(rows))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.row_of.tolist() == [r for r, row in enumerate(rows) for _ in row]


@given(rows_of_items, st.data())
def test_take_and_unique(rows, data):
    ragged = Ragged.of(rows)
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    taken = ragged.take(np.array(wanted, dtype=np.int64))
    assert [taken[r].tolist() for r in range(len(wanted))] == [rows[w] for w in wanted]
    unique = ragged.unique()
    assert [unique[r].tolist() for r in range(len(rows))] == [sorted(set(row)) for row in rows]


@given(rows_of_items)
def test_transposed_rows_have_the_rows_of_every_value(rows):
    found = Ragged.of(rows).unique().transposed(20)
    assert [found[value].tolist() for value in range(20)] == [
        [r for r, row in enumerate(rows) if value in row] for value in range(20)
    ]


def test_group_keeps_order_within_a_row():
    ragged = Ragged.group(np.array([1, 0, 1, 1]), np.array([9, 8, 3, 5]), rows=3)
    assert [ragged[r].tolist() for r in range(3)] == [[8], [9, 3, 5], []]


@given(rows_of_items)
def test_outside_lists_exactly_the_complement(rows):
    """A few questions about a row are searched for, many are answered from a list."""
    ragged = Ragged.of(rows).unique()
    complements = [[i for i in range(2000) if i not in row] for row in rows]
    for r, complement in enumerate(complements):
        ranks = np.array([0, 7, len(complement) - 1])
        assert ragged.outside(np.full(3, r), ranks).tolist() == [complement[k] for k in ranks]
    row = np.repeat(np.arange(len(rows)), [len(c) for c in complements])
    ranks = np.concatenate([np.arange(len(c)) for c in complements])
    assert ragged.outside(row, ranks).tolist() == [i for complement in complements for i in complement]
