import pytest
import torch

from confed.errors import MessageError
from confed.messages import Agreement, PartialSum, Sums

AGREED = Agreement(4, torch.float32, {"items": (4, 3), "net": (2,)}, {}, frozenset({"items", "net", "loss"}))
PLAN = {"items": "holders", "net": "participants"}


def sums(number):
    generator = torch.Generator().manual_seed(number)

    def part(shape, weight):
        return PartialSum(torch.randn(shape, generator=generator, dtype=torch.float64), weight)

    counts = torch.randint(0, 3, (4,), generator=generator).double()
    return Sums(
        number,
        0.5 * number,
        100 * number,
        {"items": part((4, 3), counts), "net": part((2,), torch.tensor(number).double())},
    )


def test_parts_add_up_in_any_order():
    one, two, three = map(sums, (1, 2, 3))
    left, right = (one + two) + three, three + (two + one)
    assert (
        (left.participants, left.loss, left.nbytes) == (right.participants, right.loss, right.nbytes) == (6, 3.0, 600)
    )
    for name in PLAN:
        torch.testing.assert_close(left.of[name].changes, right.of[name].changes)
        torch.testing.assert_close(left.of[name].weight, right.of[name].weight)


def test_nothing_changes_nothing():
    previous = torch.randn(4, 3)
    for over in ("participants", "samples", "holders", "sum"):
        assert torch.equal(PartialSum.nothing(previous, over).applied(previous, over), previous)


def test_sums_go_through_bytes():
    again = Sums.from_bytes(sums(2).to_bytes(), AGREED.sums(PLAN))
    assert (again.participants, again.loss, again.nbytes) == (2, 1.0, 200)
    for name, part in sums(2).of.items():
        assert torch.equal(again.of[name].changes, part.changes) and torch.equal(again.of[name].weight, part.weight)


def test_other_sums_than_planned_are_refused():
    with pytest.raises(MessageError, match="'weight/items' has shape"):
        Sums.from_bytes(sums(2).to_bytes(), AGREED.sums({**PLAN, "items": "participants"}))
    with pytest.raises(MessageError, match="not declared: 'changes/net', 'weight/net'"):
        Sums.from_bytes(sums(2).to_bytes(), AGREED.sums({"items": "holders"}))


def test_sums_of_other_tensors_do_not_add_up():
    with pytest.raises(ValueError, match="do not add up"):
        sums(1) + Sums(1, 0.0, 0, {"items": sums(1).of["items"]})
