"""One question is one exchange; each site is asked about its own."""

import pytest
import torch

from confed.federations.base import Federation
from confed.federations.site import Trained
from confed.messages import Download, PartialSum, Push, Sums, Tally

IDS = torch.tensor([50, 10, 40, 20, 30])
HELD = [torch.tensor([3, 0]), torch.tensor([4]), torch.tensor([2, 1])]


def tally(ids):
    return Tally({"test": ids}, {"test": ids + 1}, {"test": torch.zeros_like(ids)})


class Asked(Federation):
    """Three sites that remember what they were asked, and answer with who they are."""

    def __init__(self):
        super().__init__(HELD, IDS)
        self.questions = []

    def _ask(self, question, about):
        self.questions.append((question, about))
        for site, told in about.items():
            yield from getattr(self, f"_{question}")(site, told)

    def _train(self, site, told):
        count = len(told["clients"])
        of = {"net": PartialSum(torch.full((2,), float(site)), torch.tensor(float(count)))}
        tallies = {"": tally(IDS[HELD[site]])} if told["examine"] else {}
        yield Trained(Sums(count, float(site), 100 * count, of), float(site), tallies, {"losses": {str(site): site}})

    def _examine(self, site, told):
        yield {"": tally(IDS[HELD[site]]), str(site): tally(IDS[HELD[site]])}

    def _each(self, site, told):
        for client in told["where"]:
            yield client[None], {"net": torch.zeros(1, len(told["items"]), 1)}

    def _partials(self, site, told):
        yield [
            {"net": PartialSum(torch.ones(2), torch.isin(IDS[HELD[site]], group).sum().double())}
            for group in told["groups"]
        ]

    def state(self): ...

    def load(self, state): ...

    def serving_state(self): ...

    def commit(self, where): ...

    def restore(self, where, sites): ...


def download():
    """Everybody has a version of its own, by its place among all."""
    return Download({"net": torch.arange(5.0)[:, None]}, torch.arange(5))


@pytest.mark.parametrize("places", [[0, 1, 2, 3, 4], [1, 4], [2]])
def test_training_asks_every_site_about_its_own_clients(places):
    some = Asked()
    found = some.train(7, download(), torch.tensor(places), examine=False)
    ((question, about),) = some.questions
    assert question == "train" and list(about) == [0, 1, 2] and some.exchanges == 1
    trained = []
    for site, told in about.items():
        assert (told["number"], told["examine"], told["push"]) == (7, False, None)
        held = HELD[site][told["clients"]].tolist()
        trained += held
        received = told["download"]
        assert received.tables["net"][received.table_of][:, 0].tolist() == HELD[site].tolist()
    assert sorted(trained) == places
    assert (found.sums.participants, found.sums.nbytes, found.loss) == (len(places), 100 * len(places), 3.0)
    assert found.sums.of["net"].changes.tolist() == [3.0, 3.0] and float(found.sums.of["net"].weight) == len(places)
    assert found.notes == {"losses": {"0": 0, "1": 1, "2": 2}} and found.tallies == {}


def test_tallies_of_all_sites_are_put_together_by_domain():
    some = Asked()
    found = some.examine(download(), torch.arange(5))
    assert set(found) == {"", "0", "1", "2"}
    assert found[""].cases["test"].tolist() == [10, 20, 30, 40, 50]
    assert found[""].above["test"].tolist() == [11, 21, 31, 41, 51]
    local = some.train(1, download(), torch.arange(5), examine=True).tallies
    assert local[""].cases["test"].tolist() == [10, 20, 30, 40, 50]
    assert some.exchanges == 2


def test_a_push_goes_with_the_next_question_and_once():
    some = Asked()
    some.push(Push({"net": torch.arange(2.0)[:, None]}, torch.tensor([1, -1, 0, -1, 1])))
    assert some.exchanges == 0
    some.examine(download(), torch.arange(5))
    some.train(2, download(), torch.arange(5), examine=False)
    first, second = (about for _, about in some.questions)
    received = [told["push"] for told in first.values()]
    assert [push.table_of.tolist() for push in received] == [[-1, 0], [0], [0, -1]]
    assert [push.tables["net"][0, 0].item() for push in received] == [1.0, 1.0, 0.0], "each its own version"
    assert all(told["push"] is None for told in second.values())


@pytest.mark.parametrize("where", [[40, 30, 50], [30], [10, 20, 30, 40, 50], [20, 10]])
def test_rows_are_asked_of_those_who_have_some_the_site_of_the_first_first(where):
    some = Asked()
    found = list(some.each(["net"], torch.tensor(where), torch.tensor([0])))
    clients = [int(client) for client, _ in found]
    assert clients[0] == where[0] and sorted(clients) == sorted(where)
    ((_, about),) = some.questions
    for site, told in about.items():
        assert len(told["where"]) and set(told["where"].tolist()) <= set(IDS[HELD[site]].tolist())
    assert some.exchanges == 1


def test_partial_sums_of_groups_are_added_up_over_sites():
    some = Asked()
    found = some.partials(["net"], [torch.tensor([50, 40]), torch.tensor([10])])
    assert [float(of["net"].weight) for of in found] == [2.0, 1.0]
    assert found[0]["net"].changes.tolist() == [3.0, 3.0]
    assert some.exchanges == 1
