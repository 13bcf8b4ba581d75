import pytest
import torch

from confed.clients.backbones import LinearHead
from confed.clients.store import ClientStore
from confed.messages import Push


def store(whole=False):
    return ClientStore(LinearHead(5, 2, items_scope="private"), clients=4, seed=0, dtype=torch.float64, whole=whole)


EVERYBODY = torch.arange(4)


def test_all_clients_start_from_the_same_model():
    kept = store()
    assert set(kept.tensors) == {"weight", "bias"} and set(kept.by_row) == {"items"}
    tables = kept.read_tables("items", EVERYBODY)
    assert all(torch.equal(t[0], t[3]) for t in [*kept.tensors.values(), tables])


def test_tables_are_dense_where_they_are_trained_as_a_whole_or_sent():
    private = LinearHead(5, 2, items_scope="private")
    assert set(ClientStore(private, 4, 0, torch.float64, whole=True).tensors) == {"weight", "bias", "items"}
    assert set(ClientStore(LinearHead(5, 2).keeping_items(), 4, 0, torch.float64).tensors) >= {"items"}


def test_read_gives_copies_and_write_puts_back():
    kept = store()
    clients = torch.tensor([3, 1])
    values = kept.read(["weight"], clients)
    values["weight"] += 1
    assert torch.equal(kept.tensors["weight"][3], kept.tensors["weight"][0])
    kept.write(values, clients)
    torch.testing.assert_close(kept.tensors["weight"][[3, 1]], kept.tensors["weight"][[0, 2]] + 1)


@pytest.mark.parametrize("whole", [False, True])
def test_rows_of_private_tables(whole):
    """Index 5 is padding: it may be read, and is never written."""
    kept = store(whole=whole)
    before = kept.read_tables("items", EVERYBODY)
    clients, index = torch.tensor([2, 0]), torch.tensor([[4, 5], [1, 0]])
    rows = kept.read_rows("items", clients, index)
    assert torch.equal(rows[0, 0], before[2, 4])
    kept.write_rows("items", clients, index, rows + 1)
    after = kept.read_tables("items", EVERYBODY)
    torch.testing.assert_close(after[2, 4], before[2, 4] + 1)
    torch.testing.assert_close(after[0, :2], before[0, :2] + 1)
    assert torch.equal(after[[1, 3]], before[[1, 3]])
    assert torch.equal(after[2, :4], before[2, :4])


def test_a_push_replaces_the_tables_of_those_it_names():
    kept = ClientStore(LinearHead(3, 2).keeping_items(), 4, 0, torch.float64)
    before = kept.tensors["items"].clone()
    versions = torch.stack([torch.full((3, 2), 7.0), torch.full((3, 2), 9.0)]).double()
    kept.receive(Push({"items": versions}, torch.tensor([1, -1, 0, 1])))
    assert torch.equal(kept.tensors["items"][1], before[1])
    assert kept.tensors["items"][[0, 2, 3], 0, 0].tolist() == [9.0, 7.0, 9.0]
    kept.receive(Push({}, torch.full((4,), -1)))
    assert kept.tensors["items"][2].eq(7.0).all()


@pytest.mark.parametrize("whole", [False, True])
def test_tables_are_scaled_client_by_client(whole):
    kept = store(whole=whole)
    kept.write_rows("items", torch.tensor([2]), torch.tensor([[1]]), torch.full((1, 1, 2), 7.0, dtype=torch.float64))
    before = kept.read_tables("items", EVERYBODY)
    kept.scale("items", torch.tensor([2, 0]), torch.tensor([0.5, 2.0], dtype=torch.float64))
    expected = before * torch.tensor([2.0, 1.0, 0.5, 1.0])[:, None, None]
    torch.testing.assert_close(kept.read_tables("items", EVERYBODY), expected)


def test_a_state_is_loaded_into_another_store():
    kept, other = store(), store()
    kept.write_rows("items", torch.tensor([3]), torch.tensor([[4, 0]]), torch.rand(1, 2, 2, dtype=torch.float64))
    kept.scale("items", torch.tensor([3, 1]), torch.tensor([0.5, 2.0], dtype=torch.float64))
    kept.tensors["weight"] += 1
    other.load({name: value.clone() for name, value in kept.state().items()})
    assert torch.equal(other.read_tables("items", EVERYBODY), kept.read_tables("items", EVERYBODY))
    assert torch.equal(other.tensors["weight"], kept.tensors["weight"])
