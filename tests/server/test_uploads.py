from functools import reduce
from operator import add

import pytest
import torch

from confed.errors import MessageError
from confed.messages import Sums, Upload, summed
from confed.server.uploads import OpenUploads, Uploads
from tests.federations.three import BASES, BEFORE, CHUNKS, RULES, expected, upload


def partial(name, over, chunks):
    return reduce(add, (summed(upload(chunk), name, over, BASES[name]) for chunk in chunks))


def uploads(plan, chunks=CHUNKS[0]):
    sums = Sums(3, 3.0, 100, {name: partial(name, over, chunks) for name, over in plan.items()})
    return Uploads(sums, plan, BASES)


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("over", RULES)
def test_every_rule_equals_its_definition(over, chunks):
    torch.testing.assert_close(uploads({"items": over}, chunks).mean("items"), expected(over))


@pytest.mark.parametrize("over", RULES)
def test_sums_made_apart_are_merged(over):
    """Two holders of clients add up what they have; the server adds up the two."""
    parts = [Sums(len(c), float(sum(c)), 10 * len(c), {"items": partial("items", over, (c,))}) for c in ((2, 0), (1,))]
    sums = parts[0] + parts[1]
    assert (sums.participants, sums.loss, sums.nbytes) == (3, 3.0, 30)
    torch.testing.assert_close(Uploads(sums, {"items": over}, BASES).mean("items"), expected(over))


def test_networks_are_averaged_too():
    assert uploads({"net": "samples"}, CHUNKS[1]).mean("net").tolist() == [(0 * 1 + 10 * 3 + 20 * 4) / 8]
    assert uploads({"net": "participants"}).mean("net").tolist() == [10.0]


def test_what_nobody_sent_is_not_made_up():
    bare = Upload(torch.tensor([0]), {"items": BEFORE[None], "net": torch.ones(1, 1), "loss": torch.zeros(1)})
    with pytest.raises(ValueError, match="did not send their number"):
        summed(bare, "net", "samples", BASES["net"])
    with pytest.raises(ValueError, match="did not say which rows they hold"):
        summed(bare, "items", "holders", BEFORE)


def test_sums_know_nothing_about_single_clients():
    """What was planned, and nothing to ask about anybody."""
    found = uploads({"items": "participants"})
    assert {name for name in dir(found) if not name.startswith("_")} == {"sums", "plan", "bases", "mean", "changes"}
    with pytest.raises(KeyError):
        found.mean("net")


class Holder:
    """Has the three clients' uploads, and counts what it is asked."""

    def __init__(self):
        self.asked = 0

    def each(self, names, where, items):
        self.asked += 1
        found = upload((0, 1, 2))
        for client in where:
            of = found.of(client[None])
            yield of.clients, {name: of.tensors[name].dense()[:, items] for name in names}

    def partials(self, names, groups):
        self.asked += 1
        return [
            {name: summed(upload(tuple(group.tolist())), name, "participants", BASES[name]) for name in names}
            for group in groups
        ]


def open_uploads():
    plan = {"items": "participants", "own": "participants"}
    of, holder = uploads(plan), Holder()
    return OpenUploads(of.sums, plan, BASES, torch.arange(3), holder), holder


def test_means_over_groups_take_one_exchange():
    found, holder = open_uploads()
    one, other = found.means(["items", "own"], [torch.tensor([1, 2]), torch.tensor([0])])
    torch.testing.assert_close(one["items"], expected("participants", (1, 2)))
    torch.testing.assert_close(other["items"], expected("participants", (0,)))
    assert one.keys() == other.keys() == {"items", "own"}
    assert holder.asked == 1


def test_who_can_be_asked_has_the_sums_as_well_and_asks_nobody_for_them():
    found, holder = open_uploads()
    torch.testing.assert_close(found.mean("items"), expected("participants"))
    assert found.means(["items"], []) == []
    assert holder.asked == 0


def test_what_single_clients_sent_takes_one_exchange():
    found, holder = open_uploads()
    rows = list(found.each(["items", "own"], torch.tensor([2, 0]), torch.tensor([2, 1])))
    assert [int(client) for client, _ in rows] == [2, 0]
    assert sum(table.shape[2] for table in rows[0][1].values()) == 5
    assert all(table.shape[:2] == (1, 2) for table in rows[0][1].values())
    assert holder.asked == 1


def test_whoever_sent_nothing_is_missed():
    """Rows are asked of three clients, and one of them is in nobody's answer, or another one answers for it."""
    found, holder = open_uploads()
    answered = holder.each
    for others in (torch.tensor([0, 1]), torch.tensor([0, 1, 1])):
        holder.each = lambda names, where, items, others=others: answered(names, others, items)
        with pytest.raises((ValueError, MessageError)):
            list(found.each(["items"], torch.tensor([0, 1, 2]), torch.tensor([1])))
