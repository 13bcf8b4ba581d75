"""Companies in one place: what each hears and tells."""

from dataclasses import replace

import pytest
import torch

from confed.data.shares import Roster, Share
from confed.errors import DivergedError, MessageError
from confed.messages import Download
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.testing import CompanyConformance, tiny_domains

METHOD = method_named("fppdm")
TERMS = Terms(METHOD.config(None, {"dim": 4}), seed=3, dtype="float64")


def companies():
    return METHOD.gateway(TERMS, Share.of(tiny_domains.cut()))


def download(known=True):
    """What the server sends to all three companies, before or after it knows something."""
    server = METHOD.server(TERMS, Roster.of(tiny_domains.cut()))
    if known:
        shape = server.agreement.items, 4
        drawn = torch.Generator().manual_seed(0)
        server.strategy.load({n: torch.randn(shape, generator=drawn).double() for n in server.strategy.plan})
    return server.download()


def test_a_company_reads_rows_about_its_own_people_in_its_own_order():
    some, sent = companies(), download()
    for place, (name, silo) in enumerate(some.silos.items()):
        for places in ([place], [0, 1, 2]):
            found = some.about(name, sent.of(torch.tensor(places)))
            for part, table in sent.tables.items():
                assert torch.equal(found[part], table[0, silo.shared.people])


def test_nothing_is_heard_before_anything_is_known():
    assert companies().about("a", download(known=False).of(torch.tensor([0]))) is None


def test_rows_about_others_are_refused():
    some, sent = companies(), download().of(torch.tensor([0]))
    people = some.silos["a"].shared.people
    for others in (people[1:], people[:-1], torch.cat([people[:-1], people[-1:] + 50])):
        rows = {name: table[:, : len(others)] for name, table in sent.tables.items()}
        with pytest.raises(MessageError, match=f"rows about all {len(people)} shared users of a are expected"):
            some.about("a", replace(sent, tables=rows, rows=others))
    with pytest.raises(MessageError, match="are expected"):
        some.about("a", replace(sent, rows=None))


def test_rows_in_another_order_are_refused_or_stay_with_their_people():
    some, sent = companies(), download().of(torch.tensor([0]))
    turned = {name: table.flip(1) for name, table in sent.tables.items()}
    data = replace(sent, tables=turned, rows=sent.rows.flip(0)).to_bytes()
    try:
        found = some.about("a", Download.from_bytes(data, some.agreement.download(1)))
    except MessageError:
        return
    for part, table in download().tables.items():
        assert torch.equal(found[part], table[0, some.silos["a"].shared.people])


def test_messages_are_as_long_as_said():
    some = companies()
    said = some.message_bytes()
    uploads = some.train(1, download().of(torch.arange(3)), torch.arange(3), {})
    sent = [len(upload.only(some.agreement.uploads).to_bytes()) for upload in uploads]
    assert list(said) == ["a", "b", "c"] and list(said.values()) == sent


def test_losses_are_noted_by_company():
    some = companies()
    uploads = list(some.train(1, download().of(torch.arange(3)), torch.tensor([2, 0]), {}))
    losses = some.notes()["losses"]
    assert list(losses) == ["c", "a"] and [int(upload.clients) for upload in uploads] == [2, 0]
    assert list(losses.values()) == [float(upload.tensor("loss")) for upload in uploads]


@pytest.mark.parametrize("named", ["fppdm", "fppdm++", "etl-fc"])
def test_a_loss_that_explodes_names_its_domain(named):
    class Exploding(CompanyConformance):
        method = named
        options = {"dim": 6, "batch_size": 16, "learning_rate": 1e15, "local_epochs": 3}

    with pytest.raises(DivergedError, match=r"^domain a: .*learning_rate"):
        Exploding().trained(1)
