"""Who knows what: clients their training data, a server its clients' ids."""

import numpy as np
import pytest
import torch

from confed.data.shares import Roster, Share
from confed.data.split import TrainingData
from confed.testing import tiny, tiny_domains

SOME = np.array([17, 2, 21, 9, 3])


def test_people_have_one_share_and_their_ids_stay():
    whole, some = Share.of(tiny.cut()), Share.of(tiny.cut().take(SOME))
    assert list(whole.training) == [""] and whole.matching is None and whole.people == 0
    assert whole.ids.tolist() == list(range(tiny.USERS)) and some.ids.tolist() == SOME.tolist()
    for place, user in enumerate(SOME):
        for name in ("positives", "excluded"):
            mine, among_all = (getattr(of.training[""], name) for of in (some, whole))
            assert mine[place].tolist() == among_all[user].tolist()
    ids = 2**40 - 7 * np.arange(tiny.USERS)
    assert Share.of(tiny.with_ids(ids).take(SOME)).ids.tolist() == ids[SOME].tolist()


def test_companies_have_one_each_and_their_numbers_stay():
    cut = tiny_domains.cut()
    whole, some = Share.of(cut), Share.of(cut.take(np.array([2, 0])))
    assert list(whole.training) == ["a", "b", "c"] and whole.ids.tolist() == [0, 1, 2]
    assert list(some.training) == ["c", "a"] and some.ids.tolist() == [2, 0]
    assert some.people == whole.people == cut.matching.people, "numbers that all companies agreed on"
    for name, data in some.training.items():
        assert data is whole.training[name]
        assert some.matching.numbers[name].tolist() == whole.matching.numbers[name].tolist()
    assert set(some.matching.users) == set(some.matching.numbers) == {"a", "c"}, "nothing of the others"


@pytest.mark.parametrize("cut", [tiny.cut(), tiny_domains.cut()], ids=["people", "companies"])
def test_a_share_holds_nothing_that_is_held_out(cut):
    """Training data and who is shared: no validation or test items, and nobody's original id."""
    share = Share.of(cut)
    assert vars(share).keys() == {"training", "matching", "numbers"}
    assert all(type(data) is TrainingData for data in share.training.values())


def test_a_server_knows_ids_and_how_many_items_there_are():
    ids = 2**40 - 7 * np.arange(tiny.USERS)
    roster = Roster.of(tiny.with_ids(ids))
    assert roster.ids.tolist() == ids.tolist() and roster.items == tiny.ITEMS and roster.known == {}
    assert vars(roster).keys() == {"ids", "items", "known"}


def test_a_server_of_companies_knows_whom_each_shares():
    cut = tiny_domains.cut()
    roster = Roster.of(cut)
    assert roster.ids.tolist() == [0, 1, 2] and roster.items == cut.matching.people
    for name, people in roster.known.items():
        assert people.tolist() == cut.matching.numbers[name].tolist()
    everybody = torch.cat(list(roster.known.values()))
    assert (torch.bincount(everybody, minlength=roster.items) > 1).all(), "each is known to two at least"


def test_a_federation_of_nobody():
    roster = Roster.of_nobody()
    assert len(roster.ids) == 0 and roster.known == {}
