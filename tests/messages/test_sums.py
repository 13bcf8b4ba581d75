import pytest
import torch

from confed.errors import MessageError
from confed.messages import Agreement, PartialSum, Sums, Upload, summed

PLAN = {"items": "holders", "net": "participants"}


def agreed(plan=PLAN, uploads=("items", "net", "loss")):
    return Agreement(4, torch.float32, {"items": (4, 3), "net": (2,)}, {}, frozenset(uploads), plan)


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
    again = Sums.from_bytes(sums(2).to_bytes(), agreed().sums())
    assert (again.participants, again.loss, again.nbytes) == (2, 1.0, 200)
    for name, part in sums(2).of.items():
        assert torch.equal(again.of[name].changes, part.changes) and torch.equal(again.of[name].weight, part.weight)


def test_other_sums_than_planned_are_refused():
    with pytest.raises(MessageError, match="'weight/items' has shape"):
        Sums.from_bytes(sums(2).to_bytes(), agreed({**PLAN, "items": "participants"}).sums())
    with pytest.raises(MessageError, match="not declared: 'changes/net', 'weight/net'"):
        Sums.from_bytes(sums(2).to_bytes(), agreed({"items": "holders"}).sums())


def test_sums_of_other_tensors_do_not_add_up():
    with pytest.raises(ValueError, match="do not add up"):
        sums(1) + Sums(1, 0.0, 0, {"items": sums(1).of["items"]})


def test_a_loss_is_told_if_it_was_agreed_and_not_otherwise():
    silent = Sums(2, None, 200, sums(2).of)
    quiet = agreed(uploads=("items", "net"))
    assert Sums.from_bytes(silent.to_bytes(), quiet.sums()).loss is None
    with pytest.raises(MessageError, match="missing: 'loss'"):
        Sums.from_bytes(silent.to_bytes(), agreed().sums())
    with pytest.raises(MessageError, match="not declared: 'loss'"):
        Sums.from_bytes(sums(2).to_bytes(), quiet.sums())
    assert (silent + sums(1)).loss is None, "of some it is not known"


def upload(rows, shift, clients=1):
    tables = torch.arange(12.0).view(4, 3)[rows].expand(clients, -1, -1) + shift
    return Upload(torch.arange(clients), {"items": tables}, torch.tensor(rows))


def test_who_sends_some_rows_changes_these_and_holds_these():
    base = torch.arange(12.0).view(4, 3)
    one, two = upload([1, 3], 2.0), upload([3], 4.0, clients=2)
    total = summed(one, "items", "holders", base) + summed(two, "items", "holders", base)
    assert total.weight.tolist() == [0, 1, 0, 3]
    assert (total.applied(base, "holders") - base)[:, 0].tolist() == [0, 2, 0, pytest.approx(10 / 3)]
    over_all = summed(one, "items", "participants", base)
    assert over_all.weight == 1 and (over_all.applied(base, "participants") - base)[:, 0].tolist() == [0, 2, 0, 2]
