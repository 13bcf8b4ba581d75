import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.federations.states import cut_state, joined_states
from confed.testing import assert_equal_states


def people(count):
    """A state of so many clients, of whom each can be told from others."""
    number = torch.arange(count)
    return {
        "client.weight": number[:, None].double() + torch.arange(3) / 10,
        "client.own": number[:, None, None].float() * torch.ones(4, 2),
        "client.seen": number,
    }


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.sets(st.integers(1, n)))))
def test_people_are_put_together_row_by_row_wherever_they_were(drawn):
    """Cut anywhere, in any order; a site may be without anybody."""
    order, cuts = drawn
    borders = [0, *sorted(cuts), len(order)]
    held = [torch.tensor(order[a:b], dtype=torch.int64) for a, b in itertools.pairwise(borders)]
    whole = people(len(order))
    parts = [cut_state(whole, places, [""]) for places in held]
    for part, places in zip(parts, held, strict=True):
        assert torch.equal(part["client.seen"], places)
    assert_equal_states(joined_states(parts, held), whole, tolerance=0)


def company(name, seed):
    drawn = torch.Generator().manual_seed(seed)
    return {f"{name}/users": torch.randn(5, 2, generator=drawn), f"{name}/adam/steps": torch.tensor(seed)}


def test_companies_stand_side_by_side_and_find_theirs_by_name():
    names = ["a", "ab", "client"]
    whole = {key: value for seed, name in enumerate(names) for key, value in company(name, seed).items()}
    held = [torch.tensor([2, 0]), torch.tensor([1])]
    parts = [{**company("client", 2), **company("a", 0)}, company("ab", 1)]
    assert_equal_states(joined_states(parts, held), whole, tolerance=0)
    for part, domains in zip(parts, (["client", "a"], ["ab"]), strict=True):
        assert_equal_states(cut_state(whole, torch.tensor([0]), domains), part, tolerance=0)


def test_what_is_put_together_is_no_view_of_a_part():
    parts = [people(2), people(1)]
    whole = joined_states(parts, [torch.tensor([2, 0]), torch.tensor([1])])
    parts[0]["client.own"].fill_(99)
    assert whole["client.own"][:, 0, 0].tolist() == [1, 0, 0]


def test_who_keeps_nothing_has_an_empty_state():
    held = [torch.tensor([0]), torch.tensor([1])]
    assert joined_states([{}, {}], held) == {} == cut_state({}, held[0], [""])
