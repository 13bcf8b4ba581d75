import numpy as np
import pytest
import torch
from torch.nn import functional

from confed.models.binary_rows import dropout_factors, reconstruction, summed
from confed.ragged import Ragged
from confed.random import keyed

ROWS = [[0, 3], [], [1, 2, 4], [3]]


def dense(rows):
    table = torch.zeros(len(rows), 5, dtype=torch.float64)
    for row, items in enumerate(rows):
        table[row, items] = 1
    return table


def test_sparse_rows_times_a_table():
    """Values and gradients of the dense product, with an empty row and with no row that has a one."""
    table = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(len(ROWS), 3, dtype=torch.float64)
    (summed(Ragged.of(ROWS), table, 0.5, None) * weights).sum().backward()
    found, table.grad = table.grad, None
    (dense(ROWS) @ table * weights).sum().backward()
    torch.testing.assert_close(found, table.grad)
    nobody = summed(Ragged.of([[], []]), table, 0.5, keyed("any"))
    nobody.sum().backward()
    assert torch.equal(nobody, torch.zeros(2, 3, dtype=torch.float64))


def test_reconstruction_is_the_cross_entropy_of_dense_rows():
    logits = torch.randn(len(ROWS), 5, dtype=torch.float64, requires_grad=True)
    reconstruction(logits, Ragged.of(ROWS)).backward()
    found, logits.grad = logits.grad, None
    expected = functional.binary_cross_entropy_with_logits(logits, dense(ROWS), reduction="sum")
    expected.backward()
    torch.testing.assert_close(reconstruction(logits, Ragged.of(ROWS)), expected)
    torch.testing.assert_close(found, logits.grad)
    by_hand = reconstruction(torch.tensor([[0.0, 2.0]]), Ragged.of([[1]]))
    assert float(by_hand) == pytest.approx(np.log(2) + np.log(1 + np.exp(-2)))


def test_dropout_keeps_the_expectation():
    factors = dropout_factors((20_000,), 0.25, keyed("any"), torch.float64)
    assert set(factors.unique().tolist()) == {0.0, 1 / 0.75}
    assert float(factors.mean()) == pytest.approx(1.0, abs=0.02)
    assert torch.equal(dropout_factors((9,), 0.0, keyed("any"), torch.float64), torch.ones(9, dtype=torch.float64))
