import pytest
import torch

from confed.messages import TableRows, add_rows, gather_rows


def table_rows():
    base = torch.arange(12.0).view(1, 4, 3)
    index = torch.tensor([[1, 3], [0, 4]])  # 4 is padding: the table has items 0 to 3
    rows = torch.full((2, 2, 3), -1.0)
    rows[1, 1] = 0.0
    return TableRows(base, torch.zeros(2, dtype=torch.int64), index, rows)


def changes_of(tables, weights):
    total = torch.ones(tables.base.shape[1:], dtype=torch.float64)
    tables.add_changes(weights, total)
    return total - 1.0


def test_dense_puts_the_changed_rows_into_the_downloaded_table():
    dense = table_rows().dense()
    base = torch.arange(12.0).view(4, 3)
    assert torch.equal(dense[0][[1, 3]], torch.full((2, 3), -1.0))
    assert torch.equal(dense[0][[0, 2]], base[[0, 2]])
    assert torch.equal(dense[1][0], torch.full((3,), -1.0))
    assert torch.equal(dense[1][1:], base[1:])


@pytest.mark.parametrize("scale", [None, torch.tensor([0.9, 1.0, 0.5], dtype=torch.float64)])
@pytest.mark.parametrize("weights", [torch.ones(3).double(), torch.tensor([2.0, 0.5, 3.0], dtype=torch.float64)])
def test_summed_changes_equal_their_definition(weights, scale):
    """Three clients on two versions of the table, repeated and padded rows."""
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    index = torch.tensor([[1, 3], [0, 4], [3, 1]])
    rows = torch.randn(3, 2, 3, generator=generator, dtype=torch.float64)
    tables = TableRows(base, torch.tensor([1, 0, 0]), index, rows, scale)
    changes = tables.dense() - base[tables.base_of]
    torch.testing.assert_close(changes_of(tables, weights), (changes * weights[:, None, None]).sum(0))


def test_gather_rows_follows_each_clients_version():
    tables = torch.arange(2 * 3 * 1.0).view(2, 3, 1)
    rows = gather_rows(tables, torch.tensor([1, 0]), torch.tensor([[0, 3], [2, 1]]))
    assert rows[:, :, 0].tolist() == [[3.0, 0.0], [2.0, 1.0]]


def test_add_rows_accumulates_repeated_indices():
    table = torch.zeros(3, 2, dtype=torch.float64)
    add_rows(table, torch.tensor([2, 0, 2]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64))
    assert table.tolist() == [[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]


@pytest.mark.parametrize("scale", [None, torch.tensor([0.9, 1.0, 0.5], dtype=torch.float64)])
def test_sums_in_single_precision_do_not_depend_on_chunks(scale):
    """Many small changes of large numbers: added up in float32 they would be lost."""
    base = 1e4 + torch.randn(1, 6, 3)
    index = torch.arange(6).expand(3, -1)
    rows = base[0].expand(3, -1, -1) + 1e-2 * torch.randn(3, 6, 3)
    tables = TableRows(base, torch.zeros(3, dtype=torch.int64), index, rows, scale)
    once = torch.ones(3, dtype=torch.float64)
    parts = [changes_of(tables.of(torch.arange(3) == client), once[:1]) for client in range(3)]
    found = changes_of(tables, once)
    torch.testing.assert_close(found, sum(parts), rtol=0, atol=1e-9)
    torch.testing.assert_close(found, (rows.double() - base.double()).sum(dim=0), rtol=0, atol=1e-9)
