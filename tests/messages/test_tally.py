import pytest
import torch

from confed.errors import MessageError
from confed.messages import Tally, tally_schema

PARTS = ("validation", "test")


def tally(cases):
    """Of users who stand where their ids say, so that nothing can be mixed up unseen."""
    own = torch.tensor(cases)
    names = [f"{ranking}{part}" for ranking in ("", "full_") for part in PARTS]
    return Tally(
        dict.fromkeys(PARTS, own),
        {name: own + 10 * number for number, name in enumerate(names)},
        dict.fromkeys(names, own % 2),
    )


def same(one, other):
    return all(
        getattr(one, field).keys() == getattr(other, field).keys()
        and all(torch.equal(values, getattr(other, field)[name]) for name, values in getattr(one, field).items())
        for field in ("cases", "above", "equal")
    )


def test_what_was_examined_apart_is_put_together_in_order():
    assert same(tally([5, 1, 3]) + tally([2, 9]), tally([1, 2, 3, 5, 9]))


def test_a_part_of_it():
    assert same(tally([5, 1, 3]).of(torch.tensor([3, 5, 8])), tally([5, 3]))


def test_a_tally_goes_through_bytes():
    assert same(Tally.from_bytes(tally([5, 1, 3]).to_bytes(), tally_schema(("", "full_"), PARTS)), tally([5, 1, 3]))


def test_other_rankings_than_agreed_are_refused():
    with pytest.raises(MessageError, match="not declared: 'above/full_test'"):
        Tally.from_bytes(tally([5]).to_bytes(), tally_schema(("",), PARTS))
    negative = tally([5, 1])
    negative.equal["test"] -= 9
    with pytest.raises(MessageError, match="declared is at least 0"):
        Tally.from_bytes(negative.to_bytes(), tally_schema(("", "full_"), PARTS))


def test_tallies_of_other_rankings_are_not_put_together():
    other = tally([2])
    with pytest.raises(ValueError, match="cannot be put together"):
        tally([1]) + Tally(other.cases, {"test": other.above["test"]}, {"test": other.equal["test"]})
