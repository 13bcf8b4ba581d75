"""Where clients are: what they send is summed up, examined and asked about."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from confed.data.shares import Roster, Share
from confed.errors import DamagedError, MessageError
from confed.federations import site as site_module
from confed.federations.site import Site, Trained
from confed.messages import Download, PartialSum, Push, Sums, Tally
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.server.uploads import Uploads
from confed.testing import Recorder, tiny_domains
from tests.federations.three import (
    AFTER,
    BASES,
    BEFORE,
    CHUNKS,
    CLIENTS,
    KEPT,
    RULES,
    Three,
    agreement,
    expected,
    nobody,
    upload,
)

PLAN = {"items": "participants", "net": "participants", "own": "participants"}


def download():
    tables = {"items": BEFORE[None], "net": torch.zeros(1, 1, dtype=torch.float64)}
    return Download(tables, torch.zeros(3, dtype=torch.int64))


def place(plan, chunks=CHUNKS[0], needs="sum", judges=None, rebuilt=False, uploads=None, agreed=None):
    """A site whose clients send in these chunks."""
    sent = [upload(chunk) for chunk in chunks] if uploads is None else uploads
    return Site(lambda: Three(agreed or agreement(plan, needs), sent), judges or {}, rebuilt=rebuilt)


def trained(plan, chunks=CHUNKS[0], **options):
    return place(plan, chunks, **options).train(1, download(), CLIENTS, None, examine=False)


def asked(chunks=CHUNKS[0]):
    """A site after a round whose strategy looks at single clients."""
    site = place(PLAN, chunks, needs="individual")
    site.train(1, download(), CLIENTS, None, examine=False)
    return site


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("over", RULES)
def test_sums_are_those_planned_however_clients_send(over, chunks):
    plan = {"items": over, "net": over if over != "holders" else "sum"}
    found = Uploads(trained(plan, chunks).sums, plan, BASES)
    torch.testing.assert_close(found.mean("items"), expected(over))
    assert set(found.sums.of) == {"items", "net"}


def test_networks_are_averaged_too():
    plan = {"net": "samples"}
    found = Uploads(trained(plan, CHUNKS[1]).sums, plan, BASES)
    assert found.mean("net").tolist() == [(0 * 1 + 10 * 3 + 20 * 4) / 8]


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("needs", ["sum", "individual"])
def test_participants_loss_and_bytes_add_up(chunks, needs):
    found = trained({"items": "participants"}, chunks, needs=needs)
    names = agreement({"items": "participants"}).uploads
    alone = sum(len(upload((client,)).only(names).to_bytes()) for client in range(3))
    assert (found.sums.participants, found.sums.loss, found.loss, found.sums.nbytes) == (3, 3.0, 3.0, alone)
    tensors = BEFORE.numel() * 8 + 4 + 3 * 8
    assert 3 * tensors < found.sums.nbytes < 3 * (tensors + 700)


def test_a_loss_that_is_not_told_is_seen_in_a_simulation_only():
    plan = {"items": "participants"}
    found = trained(plan, agreed=agreement(plan, uploads=frozenset({"items"})))
    assert found.loss == 3.0 and found.sums.loss is None


def test_a_mean_needs_what_it_is_weighted_by():
    """A strategy that forgot to have it sent gets nothing made up."""
    for over, missing in (("samples", "did not send their number"), ("holders", "did not say which rows they hold")):
        plan = {"items": over}
        forgotten = agreement(plan, uploads=frozenset({"items", "loss"}))
        with pytest.raises(ValueError, match=missing):
            trained(plan, CHUNKS[1], agreed=forgotten, uploads=[whole(client) for client in range(3)])


def whole(client):
    """One client's upload with its whole table."""
    of = upload((client,))
    return type(of)(of.clients, {**of.tensors, "items": AFTER[client][None]})


@pytest.mark.parametrize("needs", ["sum", "individual"])
def test_nobody_sends_who_was_not_asked_and_nobody_twice(needs):
    plan = {"items": "participants"}
    for uploads in ([upload((0, 1)), upload((1, 2))], [upload((0,)), upload((0,)), upload((2,))]):
        with pytest.raises(MessageError, match=r"a second upload of client [01]"):
            trained(plan, needs=needs, uploads=uploads)
    for stranger in (-1, 3, 2**60):
        ids = torch.tensor([0, 1, stranger])
        with pytest.raises(MessageError, match=f"client {stranger}, who does not take part"):
            trained(plan, needs=needs, uploads=[upload((0, 1, 2), ids)])


@pytest.mark.parametrize("needs", ["sum", "individual"])
def test_an_upload_of_nobody_changes_nothing(needs):
    with_nobody = trained(PLAN, needs=needs, uploads=[nobody(), upload((0, 1, 2)), nobody()])
    without = trained(PLAN, needs=needs)
    for name in PLAN:
        assert torch.equal(with_nobody.sums.of[name].changes, without.sums.of[name].changes)
    assert (with_nobody.sums.participants, with_nobody.sums.nbytes) == (3, without.sums.nbytes)


def test_where_sums_are_enough_no_upload_is_kept():
    site = place(PLAN)
    site.train(1, download(), CLIENTS, None, examine=False)
    assert list(site.each(["items"], CLIENTS, torch.tensor([1]))) == []
    (found,) = site.partials(["items"], [CLIENTS])
    assert not found["items"].changes.any() and not found["items"].weight


@pytest.mark.parametrize("at_once", [1, 1 << 24])
@pytest.mark.parametrize("chunks", CHUNKS)
def test_rows_of_single_clients_the_first_of_them_first(chunks, at_once, monkeypatch):
    monkeypatch.setattr(site_module, "_VALUES", at_once)
    items = torch.tensor([2, 1])
    for where in ([2, 0], [1], [0, 1, 2], [1, 2, 0]):
        found = list(asked(chunks).each(["items", "own"], torch.tensor(where), items))
        clients = torch.cat([ids for ids, _ in found]).tolist()
        assert clients[0] == where[0] and sorted(clients) == sorted(where)
        for name, whole in (("items", AFTER), ("own", KEPT)):
            for client, rows in zip(clients, torch.cat([sent[name] for _, sent in found]), strict=True):
                assert torch.equal(rows, whole[client][items])
        if at_once == 1:
            assert all(len(ids) == 1 for ids, _ in found)


def test_what_single_clients_sent_whole():
    for ids, sent in asked().each(["items", "net"], CLIENTS, None):
        for place, client in enumerate(ids.tolist()):
            assert torch.equal(sent["items"][place], AFTER[client])
        assert sent["net"].shape == (len(ids), 1)


def test_nobody_is_asked_to_train_on_tables_that_were_not_sent():
    served = Download(download().tables, torch.tensor([0, -1, 0]))
    with pytest.raises(MessageError, match="was sent nothing"):
        place(PLAN).train(1, served, CLIENTS, None, examine=False)
    with pytest.raises(MessageError, match="was sent nothing"):
        place(PLAN).examine(served, CLIENTS, None)


def test_whoever_is_elsewhere_is_left_to_others():
    """By ids: a site answers about its own."""
    found = list(asked().each(["items"], torch.tensor([7, 1]), torch.tensor([1])))
    assert [ids.tolist() for ids, _ in found] == [[1]]


@pytest.mark.parametrize("over", RULES)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_partial_sums_of_groups(over, chunks):
    plan = {"items": over, "net": "participants"}
    site = place(plan, chunks, needs="individual")
    site.train(1, download(), CLIENTS, None, examine=False)
    one, other, strangers = site.partials(
        ["items", "net"], [torch.tensor([1, 2]), torch.tensor([0]), torch.tensor([9])]
    )
    torch.testing.assert_close(one["items"].applied(BEFORE, over), expected(over, (1, 2)))
    torch.testing.assert_close(other["items"].applied(BEFORE, over), expected(over, (0,)))
    assert one["net"].applied(BASES["net"], "participants").tolist() == [15.0]
    assert not strangers["items"].changes.any() and not strangers["items"].weight.any()


def test_uploads_are_asked_about_until_the_next_round():
    site = asked()
    site.gateway.uploads = [upload((1,))]
    site.train(2, download(), torch.tensor([1]), None, examine=False)
    assert [ids.tolist() for ids, _ in site.each(["items"], CLIENTS, torch.tensor([0]))] == [[1]]


def test_only_what_was_agreed_is_kept():
    """Clients may have more than they send."""
    plan = {"items": "participants"}
    site = place(plan, needs="individual")
    site.train(1, download(), CLIENTS, None, examine=False)
    with pytest.raises(KeyError):
        list(site.each(["own"], CLIENTS, torch.tensor([0])))


def test_a_push_arrives_before_whatever_else_is_asked():
    push = Push({"own": KEPT[:1]}, torch.zeros(3, dtype=torch.int64))
    site = place(PLAN, judges={"": Recorder(3, 4)})
    site.train(1, download(), CLIENTS, push, examine=True)
    site.examine(download(), CLIENTS, push)
    site.state(push)
    site.state(None)
    assert site.gateway.heard == ["push", "train 1", "push", "score", "push"]


def test_judges_hand_out_a_card_for_every_examination_and_none_without():
    judges = {"a": Recorder(3, 4), "b": Recorder(3, 4)}
    site = place(PLAN, judges=judges)
    assert site.train(1, download(), CLIENTS, None, examine=False).tallies == {}
    assert set(site.train(2, download(), CLIENTS, None, examine=True).tallies) == {"a", "b"}
    assert set(site.examine(download(), CLIENTS, None)) == {"a", "b"}
    for judge in judges.values():
        assert [float(card.scores.max()) for card in judge.cards] == [3.0, 3.0]


@pytest.mark.parametrize(("rebuilt", "served"), [(True, 1.0), (False, 3.0)])
def test_serving_takes_what_was_kept_before_the_round_or_after_it(rebuilt, served):
    """In copies: what comes later changes nothing."""
    site = place(PLAN, rebuilt=rebuilt)
    for number in (1, 2):
        site.train(number, download(), CLIENTS, None, examine=False)
    state = site.serving_state()
    site.train(3, download(), CLIENTS, None, examine=False)
    assert (state["client.kept"] == served).all()
    site.load(state)
    assert (site.state(None)["client.kept"] == served).all()


def test_a_site_returns_to_what_it_wrote_or_to_where_the_run_began(tmp_path):
    site = place(PLAN, needs="individual", rebuilt=True)
    site.train(1, download(), CLIENTS, None, examine=False)
    site.train(2, download(), CLIENTS, None, examine=False)
    site.mark(None)
    sealed = site.commit(str(tmp_path / "two"), "site-0", None)
    site.train(3, download(), CLIENTS, None, examine=False)
    site.restore(str(tmp_path / "two"), asdict(sealed))
    assert (site.state(None)["client.kept"] == 1 + 2).all()
    assert list(site.each(["items"], CLIENTS, torch.tensor([0]))) == [], "nobody sent anything since"
    assert site.commit(str(tmp_path / "again"), "site-0", None) == sealed
    site.restore(str(tmp_path), None)
    assert not site.state(None)["client.kept"].any()


def test_a_site_does_not_return_to_what_it_did_not_write(tmp_path):
    site = place(PLAN)
    sealed = site.commit(str(tmp_path), "site-0", None)
    path = tmp_path / sealed.name
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DamagedError, match=r"site-0-.* is not what was written"):
        site.restore(str(tmp_path), asdict(sealed))


def test_a_push_arrives_before_a_round_is_marked_or_written(tmp_path):
    push = Push({"own": KEPT[:1]}, torch.zeros(3, dtype=torch.int64))
    site = place(PLAN)
    site.mark(push)
    site.commit(str(tmp_path), "site-0", push)
    assert site.gateway.heard == ["push", "push"]


def tally(clients):
    cases = torch.tensor(clients)
    return Tally({"test": cases}, {"test": 10 * cases}, {"test": torch.zeros_like(cases)})


def test_what_sites_trained_is_put_together():
    def part(loss, clients, notes):
        sums = Sums(len(clients), loss, 10, {"net": PartialSum(torch.ones(1), torch.ones(()))})
        tallies = {"shared": tally(clients), str(clients[0]): tally(clients)}
        return Trained(sums, loss, tallies, notes)

    one = part(1.0, [3, 1], {"losses": {"a": 0.5}, "noise": {"a": 1}})
    found = one + part(2.0, [2], {"losses": {"b": 0.25}})
    assert (found.loss, found.sums.participants, found.sums.nbytes) == (3.0, 3, 20)
    assert found.notes == {"losses": {"a": 0.5, "b": 0.25}, "noise": {"a": 1}}
    assert set(found.tallies) == {"shared", "3", "2"}
    assert found.tallies["shared"].cases["test"].tolist() == [1, 2, 3]
    assert found.tallies["shared"].above["test"].tolist() == [10, 20, 30]


def test_companies_send_some_rows_and_each_message_is_measured():
    """Which rows somebody sends says how long the message is, and who holds them."""
    method = method_named("fedmf-silo")
    terms = Terms(method.config(None, {"dim": 4}), seed=0, dtype="float64")
    cut = tiny_domains.cut()
    sites = [method.site(terms, Share.of(cut), {}, rebuilt=False) for _ in range(2)]
    server = method.server(terms, Roster.of(cut))
    everybody = torch.arange(3)
    received = server.download().of(everybody)
    found = sites[0].train(1, received, everybody, None, examine=False)
    uploads = list(sites[1].gateway.train(1, received, everybody, {}))
    lengths = [len(one.only(server.agreement.uploads).to_bytes()) for one in uploads]
    assert len(set(lengths)) > 1 and found.sums.nbytes == sum(lengths)
    (name,) = server.agreement.plan
    known = np.concatenate([one.rows.numpy() for one in uploads])
    assert found.sums.of[name].weight.tolist() == np.bincount(known, minlength=cut.matching.people).tolist()
