"""Stored rows against whole tables."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.clients.kept_rows import KeptRows
from confed.errors import ConfedError
from confed.federations.states import joined_states, of_clients

CLIENTS, ITEMS, WIDTH = 5, 7, 3
START = torch.linspace(-1.0, 1.0, ITEMS * WIDTH, dtype=torch.float64).view(ITEMS, WIDTH)
EVERYBODY = torch.arange(CLIENTS)


@st.composite
def changes(draw):
    """Some clients; which of their rows are replaced, padding among them, and by how much everything decays."""
    clients = draw(st.lists(st.integers(0, CLIENTS - 1), min_size=1, max_size=CLIENTS, unique=True))
    width = draw(st.integers(0, ITEMS))
    items = [draw(st.permutations(range(ITEMS)))[:width] for _ in clients]
    index = torch.tensor(items, dtype=torch.int64).view(len(clients), width)
    padded = torch.where(torch.rand(index.shape, generator=torch.Generator().manual_seed(width)) < 0.3, ITEMS, index)
    factors = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, -2.0]), min_size=len(clients), max_size=len(clients)))
    return torch.tensor(clients), padded, torch.tensor(factors, dtype=torch.float64), draw(st.integers(0, 9))


@given(st.lists(changes(), max_size=6))
def test_they_are_what_whole_tables_would_be(story):
    kept, whole = KeptRows(START, CLIENTS), START.expand(CLIENTS, -1, -1).clone()
    for clients, index, factors, seed in story:
        rows = torch.randn(*index.shape, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        kept.decay(clients, factors)
        whole[clients] *= factors[:, None, None]
        kept.write(clients, index, rows)
        for u, client in enumerate(clients.tolist()):
            for j, item in enumerate(index[u].tolist()):
                if item < ITEMS:
                    whole[client, item] = rows[u, j]
        found = kept.read(clients, index)
        assert torch.equal(found[index == ITEMS], torch.zeros(int((index == ITEMS).sum()), WIDTH, dtype=torch.float64))
    torch.testing.assert_close(kept.whole(EVERYBODY), whole)
    state = {f"client.own.{name}": value for name, value in kept.state().items()}
    assert int(state["client.own.count"].sum()) == len(state["client.own.changed.rows"]) <= CLIENTS * ITEMS
    some = torch.tensor([4, 1])
    assert torch.equal(_whole(of_clients(state, some)), kept.whole(some))
    held = [torch.tensor([3, 0]), torch.tensor([1, 4, 2])]
    joined = joined_states([of_clients(state, places) for places in held], held)
    assert joined.keys() == state.keys()
    assert all(torch.equal(joined[name], value) for name, value in state.items())


def _whole(state):
    parts = {name.removeprefix("client.own."): value for name, value in state.items()}
    twin = KeptRows(START, len(parts["count"]))
    twin.load(parts)
    return twin.whole(torch.arange(len(parts["count"])))


def test_only_rows_that_changed_take_memory():
    kept = KeptRows(START, CLIENTS)
    assert len(kept.state()["changed.rows"]) == 0
    for _ in range(3):
        kept.write(torch.tensor([2]), torch.tensor([[5, ITEMS, 1]]), torch.ones(1, 3, WIDTH, dtype=torch.float64))
    state = kept.state()
    assert state["count"].tolist() == [0, 0, 2, 0, 0]
    assert state["changed.items"].tolist() == [1, 5]


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_write_side_by_side_while_rows_move(threads):
    clients, items = 200, 60
    start = torch.zeros(items, WIDTH, dtype=torch.float64)
    kept = KeptRows(start, clients)

    def work(client):
        own = torch.tensor([client])
        for item in range(items):
            index = torch.tensor([[item]])
            kept.write(own, index, kept.read(own, index) + client + item)
            kept.decay(own, torch.tensor([2.0], dtype=torch.float64))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(clients)))
    expected = [[(client + item) * 2.0 ** (items - item) for item in range(items)] for client in range(clients)]
    torch.testing.assert_close(kept.whole(torch.arange(clients))[:, :, 0], torch.tensor(expected, dtype=torch.float64))


def test_who_waits_for_room_finds_it_made():
    """Threads that wait together need one longer array, not one each."""
    kept = KeptRows(torch.zeros(400, WIDTH, dtype=torch.float64), 16)
    rows = torch.ones(1, 20, WIDTH, dtype=torch.float64)

    def work(client):
        for start in range(0, 400, 20):
            kept.write(torch.tensor([client]), torch.arange(start, start + 20)[None], rows)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert kept._used == 16 * 400
    assert len(kept._rows) <= 16 * 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("changed.rows", torch.zeros(2, WIDTH + 1)),
        ("changed.rows", torch.zeros(1, WIDTH)),
        ("changed.items", torch.zeros(1, dtype=torch.int32)),
        ("changed.items", torch.full((2,), ITEMS, dtype=torch.int32)),
        ("count", torch.tensor([0, 0, 3, 0, 0])),
    ],
)
def test_a_state_that_does_not_fit_is_refused(name, value):
    kept = KeptRows(START, CLIENTS)
    kept.write(torch.tensor([2]), torch.tensor([[5, 1]]), torch.ones(1, 2, WIDTH, dtype=torch.float64))
    with pytest.raises((ValueError, IndexError)):
        kept.load({**kept.state(), name: value})


def test_numbers_are_loaded_in_the_type_of_the_table():
    kept = KeptRows(START, CLIENTS)
    kept.write(torch.tensor([2]), torch.tensor([[5, 1]]), torch.ones(1, 2, WIDTH, dtype=torch.float64))
    other = KeptRows(START.float(), CLIENTS)
    other.load(kept.state())
    assert other.whole(EVERYBODY).dtype == torch.float32


def test_what_would_not_fit_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr("confed.clients.kept_rows._MOST", 1)
    kept = KeptRows(START, CLIENTS)
    with pytest.raises(ConfedError, match="can keep 1"):
        kept.write(torch.tensor([2]), torch.tensor([[5, 1]]), torch.ones(1, 2, WIDTH, dtype=torch.float64))
    assert len(kept.state()["changed.rows"]) == 0
