import pytest
import torch

from confed.records import TableRows, Upload
from confed.server.uploads import SummedUploads

BEFORE = torch.arange(8.0, dtype=torch.float64).view(4, 2)
AFTER = [BEFORE.clone() for _ in range(3)]
AFTER[0][1] += 3.0
AFTER[1][1] += 5.0
AFTER[1][2] -= 1.0


def uploads(over, chunks=((0, 1, 2),), samples=(1, 3, 4)):
    """Three clients; 0 changed row 1, 1 changed rows 1 and 2, 2 drew row 0 and left it as it was."""
    index = torch.tensor([[1, 4], [1, 2], [0, 4]])
    kept = SummedUploads({"items": over}, {"items": BEFORE})
    for chunk in chunks:
        some = torch.tensor(chunk)
        rows = torch.stack([torch.cat([AFTER[c], torch.zeros(1, 2)])[index[c]] for c in chunk])
        table = TableRows(BEFORE[None], torch.zeros(len(some), dtype=torch.int64), index[some], rows)
        kept.add(Upload(some, {"items": table}))
    return kept


@pytest.mark.parametrize("chunks", [((0, 1, 2),), ((0,), (1,), (2,)), ((2, 0), (1,))])
def test_rules_by_hand(chunks):
    change = torch.zeros(4, 2, dtype=torch.float64)
    change[1], change[2] = 8.0, -1.0
    assert torch.equal(uploads("participants", chunks).merged("items"), BEFORE + change / 3)
    assert torch.equal(uploads("sum", chunks).merged("items"), BEFORE + change)
    change[1] /= 2
    assert torch.equal(uploads("holders", chunks).merged("items"), BEFORE + change)


def test_weighted_mean_of_a_network():
    before, after = torch.zeros(3), torch.tensor([[1.0, 1.0, 1.0], [5.0, 5.0, 5.0]])
    kept = SummedUploads({"net": "samples"}, {"net": before})
    kept.add(Upload(torch.tensor([0]), {"net": after[:1], "samples": torch.tensor([1])}))
    kept.add(Upload(torch.tensor([1]), {"net": after[1:], "samples": torch.tensor([3])}))
    assert kept.merged("net").tolist() == [4.0, 4.0, 4.0]


def test_participants_and_bytes_add_up():
    kept = uploads("sum", chunks=((0, 1), (2,)))
    assert kept.participants == 3
    assert kept.nbytes == 3 * BEFORE.numel() * 8
