import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.clients.sampling import compact, draw_rows
from confed.random import Stream
from confed.testing.tiny import cut


def draw(data, clients, negatives=4, number=1):
    return draw_rows(data, np.array(clients), negatives, Stream.of(0, "negatives", number), torch.float64)


def rows_of(rows, client):
    """(item, label) of every real row of a client."""
    at = int(np.flatnonzero(rows.clients == client)[0])
    length = rows.lengths[at]
    items = rows.touched[at][rows.local[at, :length]].tolist()
    return list(zip(items, rows.labels[at, :length].tolist(), strict=True))


def test_every_positive_comes_with_distinct_negatives_from_the_pool():
    data = cut().training
    rows = draw(data, range(24))
    for client in range(24):
        pairs = rows_of(rows, client)
        assert [i for i, y in pairs if y == 1] == data.positives[client].tolist()
        for start in range(0, len(pairs), 5):
            assert [y for _, y in pairs[start : start + 5]] == [1, 0, 0, 0, 0]
            negatives = [i for i, _ in pairs[start + 1 : start + 5]]
            assert len(set(negatives)) == 4
            assert not set(negatives) & set(data.excluded[client].tolist())


def test_rows_do_not_depend_on_who_else_is_in_the_chunk():
    data = cut().training
    together = draw(data, range(24))
    for client in (0, 7, 23):
        assert rows_of(draw(data, [client]), client) == rows_of(together, client)
        assert rows_of(draw(data, [5, client, 11]), client) == rows_of(together, client)


def test_negatives_are_redrawn_every_round():
    data = cut().training
    assert rows_of(draw(data, [0], number=1), 0) != rows_of(draw(data, [0], number=2), 0)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_batches_cover_every_row_once(size):
    rows = draw(cut().training, range(24))
    seen = [[] for _ in range(24)]
    for local, labels, weights in rows.batches(size, epoch=0, stream=Stream.of(0, "shuffle", 1)):
        assert local.shape[1] <= size
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(weights), dtype=torch.float64))
        for client in range(len(local)):
            real = weights[client] > 0
            items = rows.touched[client][local[client][real]].tolist()
            seen[client] += zip(items, labels[client][real].tolist(), strict=True)
    for client in range(24):
        assert sorted(seen[client]) == sorted(rows_of(rows, rows.clients[client]))


def test_rows_are_reshuffled_every_epoch():
    rows = draw(cut().training, range(24))
    first, second = (next(rows.batches(8, epoch, Stream.of(0, "shuffle", 1)))[0] for epoch in (0, 1))
    assert not torch.equal(first, second)


@given(st.lists(st.lists(st.integers(0, 10), min_size=6, max_size=6), min_size=1, max_size=5))
def test_compact_numbers_distinct_items(table):
    """Item 10 is padding. Looking up what was numbered gives the items back."""
    items = np.array(table)
    local, touched = compact(items, 10)
    for row, numbers, names in zip(items, local, touched, strict=True):
        real = row < 10
        assert names[numbers[real]].tolist() == row[real].tolist()
        distinct = names[names < 10].tolist()
        assert sorted(distinct) == sorted(set(row[real].tolist()))
