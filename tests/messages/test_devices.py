from dataclasses import replace

import pytest
import torch

from confed.errors import MessageError
from confed.messages import Agreement, Download, Field, HeldTables, Push, TableRows, Upload

AGREED = Agreement(
    items=4,
    dtype=torch.float32,
    received={"items": (4, 3), "net": (2,)},
    kept={"own": (4, 2)},
    uploads=frozenset({"items", "net", "own", "samples", "held", "loss"}),
    side={"membership": Field(torch.uint8, ("items",), least=0, below=5, optional=True)},
)


def download():
    tables = {"items": torch.arange(36.0).view(3, 4, 3), "net": torch.arange(6.0).view(3, 2)}
    side = {"membership": torch.tensor([0, 1, 4, 1], dtype=torch.uint8)}
    return Download(tables, torch.tensor([0, 2, 2, 1, 0]), side, alike=torch.tensor([0, 1, 1, -1, 0]))


def push():
    return Push({"own": torch.arange(16.0).view(2, 4, 2)}, torch.tensor([-1, 1, 0, -1, 1]))


def upload():
    touched = torch.tensor([[1, 3], [0, 4]])  # 4 is padding: there are items 0 to 3
    rows = torch.full((2, 2, 3), -1.0)
    base = torch.arange(12.0).view(1, 4, 3)
    table = TableRows(base, torch.zeros(2, dtype=torch.int64), touched, rows)
    held = torch.zeros(2, 4, dtype=torch.bool)
    facts = {"samples": torch.tensor([5, 2]), "held": held, "loss": torch.tensor([0.5, 0.25], dtype=torch.float64)}
    own = HeldTables(torch.arange(40.0).view(5, 4, 2), torch.tensor([4, 1]))
    return Upload(torch.tensor([2**60, 17]), {"items": table, "own": own, "net": torch.ones(2, 2), **facts})


@pytest.mark.parametrize("places", [[0], [1, 2], [4, 3, 1], [0, 1, 2, 3, 4]])
def test_some_clients_get_what_they_get_among_all(places):
    whole, some = download(), download().of(torch.tensor(places))
    for place, version in zip(places, some.table_of.tolist(), strict=True):
        for name, tables in whole.tables.items():
            assert torch.equal(some.tables[name][version], tables[whole.table_of[place]])
    assert len(some.tables["items"]) == len({int(whole.table_of[place]) for place in places}), "no version of others"
    assert torch.equal(some.side["membership"], whole.side["membership"])


def test_who_is_alike_in_a_part():
    """Whoever has nobody of its group beside it is like nobody, and a single client is told nothing of groups."""
    assert download().of(torch.tensor([2, 0, 1])).alike.tolist() == [1, -1, 1]
    assert download().of(torch.tensor([0])).alike is None
    assert download().of(torch.tensor([0, 1, 3])).alike is None


@pytest.mark.parametrize("places", [[0], [0, 3], [1, 0], [4, 2, 1]])
def test_a_push_reaches_the_same_clients_in_a_part(places):
    whole, some = push(), push().of(torch.tensor(places))
    for place, version in zip(places, some.table_of.tolist(), strict=True):
        assert (version < 0) == (whole.table_of[place] < 0)
        if version >= 0:
            assert torch.equal(some.tables["own"][version], whole.tables["own"][whole.table_of[place]])
    assert some.versions == len({int(whole.table_of[place]) for place in places} - {-1})


def test_a_push_counts_only_those_who_get_one():
    single = len(push().of(torch.tensor([1])).to_bytes())
    assert push().nbytes == 3 * single
    assert Push({"own": torch.zeros(0, 4, 2)}, torch.full((5,), -1)).nbytes == 0


def test_downloads_go_through_bytes():
    for places in ([0], [1, 2], [0, 1, 2, 3, 4]):
        some = download().of(torch.tensor(places))
        again = Download.from_bytes(some.to_bytes(), AGREED.download(len(places)))
        assert again.tables.keys() == some.tables.keys() and again.side.keys() == some.side.keys()
        assert all(torch.equal(again.tables[name], table) for name, table in some.tables.items())
        assert torch.equal(again.table_of, some.table_of)
        assert (again.alike is None) == (some.alike is None)


def test_pushes_go_through_bytes_also_where_nobody_gets_one():
    for places in ([0], [1, 2], [0, 1, 2, 3, 4]):
        some = push().of(torch.tensor(places))
        again = Push.from_bytes(some.to_bytes(), AGREED.push(len(places)))
        assert torch.equal(again.tables["own"], some.tables["own"]) and torch.equal(again.table_of, some.table_of)


def test_uploads_go_through_bytes_as_whole_tables():
    again = Upload.from_bytes(upload().to_bytes(), AGREED.upload(2))
    assert again.clients.tolist() == [2**60, 17]
    for name, sent in upload().tensors.items():
        assert torch.equal(again.tensors[name], sent if isinstance(sent, torch.Tensor) else sent.dense())


def test_one_clients_bytes_are_as_many_as_anothers():
    sizes = {len(upload().of(torch.arange(2) == place).to_bytes()) for place in range(2)}
    assert sizes == {upload().bytes_per_client}
    sizes = [len(download().of(torch.tensor([place])).to_bytes()) for place in range(5)]
    assert len(set(sizes)) == 1
    for places in ([], [3], [4, 1], [0, 1, 2, 3, 4]):
        assert download().bytes_to(torch.tensor(places, dtype=torch.int64)) == sum(sizes[place] for place in places)


def test_nothing_is_no_message():
    assert Download({}, torch.zeros(3, dtype=torch.int64)).bytes_to(torch.arange(3)) == 0
    assert Upload(torch.arange(3), {}).bytes_per_client == 0
    side = Download({}, torch.zeros(3, dtype=torch.int64), download().side)
    assert side.bytes_to(torch.arange(3)) == 3 * len(side.of(torch.tensor([0])).to_bytes())


@pytest.mark.parametrize(
    ("message", "schema", "said"),
    [
        (
            Download({"items": torch.zeros(1, 4, 3)}, torch.zeros(1, dtype=torch.int64)),
            AGREED.download(1),
            "tables/net",
        ),
        (download(), AGREED.download(4), "clients = 4"),
        (Push({"own": torch.zeros(1, 4, 2)}, torch.tensor([1])), AGREED.push(1), "declared is -1 to 0"),
        (Push({"own": torch.zeros(0, 4, 2)}, torch.tensor([0])), AGREED.push(1), "declared is -1 to -1"),
        (Upload(torch.tensor([1]), {"user": torch.zeros(1, 3)}), AGREED.upload(1), "not declared: 'sent/user'"),
    ],
)
def test_what_was_not_agreed_is_refused(message, schema, said):
    with pytest.raises(MessageError, match=said):
        type(message).from_bytes(message.to_bytes(), schema)


def test_a_download_without_tables_has_one_version():
    kept = Agreement(4, torch.float32, {}, {"own": (4, 2)}, frozenset({"own"}))
    fine = Download({}, torch.zeros(2, dtype=torch.int64))
    assert Download.from_bytes(fine.to_bytes(), kept.download(2)).tables == {}
    with pytest.raises(MessageError, match="declared is -1 to 0"):
        Download.from_bytes(Download({}, torch.tensor([0, 1])).to_bytes(), kept.download(2))


COMPANIES = Agreement(
    items=8,
    dtype=torch.float32,
    received={"mean": (8, 2), "deviation": (8, 2)},
    kept={},
    uploads=frozenset({"mean", "deviation", "loss"}),
    plan={"mean": "holders", "deviation": "holders"},
    by_rows=True,
)


def told():
    """What the server knows of eight people, and what each of three companies may hear."""
    tables = {"mean": torch.arange(16.0).view(1, 8, 2), "deviation": torch.ones(1, 8, 2)}
    known = [torch.tensor([0, 4, 7]), torch.tensor([4]), torch.tensor([1, 2, 3, 4])]
    return Download(tables, torch.zeros(3, dtype=torch.int64), told=known)


def rows(people=(4, 0, 7), clients=(1,)):
    """What a company says of some of them."""
    mean = torch.arange(2.0 * len(people)).view(1, len(people), 2)
    tensors = {"mean": mean, "deviation": torch.ones(1, len(people), 2), "loss": torch.tensor([0.25]).double()}
    return Upload(torch.tensor(clients), tensors, torch.tensor(people))


def agreed(**changed):
    return replace(COMPANIES, **changed)


@pytest.mark.parametrize("places", [[0], [1], [2], [1, 0], [0, 1, 2]])
def test_companies_hear_of_their_own_people_only(places):
    some = told().of(torch.tensor(places))
    known = sorted({person for place in places for person in told().told[place].tolist()})
    assert some.rows.tolist() == known and some.told is None
    for name, versions in told().tables.items():
        assert torch.equal(some.tables[name], versions[:, known])
    again = Download.from_bytes(some.to_bytes(), COMPANIES.download(len(places)))
    assert torch.equal(again.rows, some.rows)
    assert all(torch.equal(again.tables[name], table) for name, table in some.tables.items())


def test_who_hears_of_more_people_gets_a_longer_message():
    alone = [len(told().of(torch.tensor([place])).to_bytes()) for place in range(3)]
    assert alone[1] < alone[0] < alone[2]
    assert told().bytes_to(torch.tensor([2, 0])) == alone[2] + alone[0]
    assert told().bytes_to(torch.tensor([], dtype=torch.int64)) == 0


def test_companies_hear_nothing_before_anything_is_known():
    silent = Download({}, torch.zeros(3, dtype=torch.int64), told=told().told)
    assert silent.bytes_to(torch.arange(3)) == 0
    some = silent.of(torch.tensor([0, 2]))
    assert some.rows is None and some.tables == {}
    again = Download.from_bytes(some.to_bytes(), COMPANIES.download(2))
    assert again.rows is None and again.tables == {}


def test_rows_go_through_bytes():
    again = Upload.from_bytes(rows().to_bytes(), COMPANIES.upload(1))
    assert again.rows.tolist() == [4, 0, 7] and again.clients.tolist() == [1] and float(again.tensor("loss")) == 0.25
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in rows().tensors.items())
    assert rows().bytes_per_client == len(rows().to_bytes())


def test_a_part_of_an_upload_says_the_same_rows():
    assert rows().only(["mean"]).rows.tolist() == [4, 0, 7] and set(rows().only(["mean"]).tensors) == {"mean"}
    assert rows().of(torch.tensor([True])).rows.tolist() == [4, 0, 7]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (agreed(items=7), "'rows' has 0 to 7, declared is 0 to 6"),
        (agreed(received={"mean": (8, 3), "deviation": (8, 2)}), "'sent/mean' has shape"),
        (agreed(uploads=frozenset({"mean", "deviation"})), "not declared: 'sent/loss'"),
        (agreed(uploads=COMPANIES.uploads | {"samples"}), "missing: 'sent/samples'"),
        (agreed(dtype=torch.float64), "is F32, declared is F64"),
        (agreed(by_rows=False), "not declared: 'rows'"),
    ],
)
def test_rows_that_were_not_agreed_on_are_refused(expected, said):
    with pytest.raises(MessageError, match=said):
        Upload.from_bytes(rows().to_bytes(), expected.upload(1))


def test_rows_of_other_people_than_are_named_are_refused():
    """As many of them as were named, for every part."""
    sent = rows()
    fewer = Upload(sent.clients, sent.tensors, torch.tensor([4, 0]))
    with pytest.raises(MessageError, match="has shape"):
        Upload.from_bytes(fewer.to_bytes(), COMPANIES.upload(1))
    unnamed = Upload(sent.clients, sent.tensors)
    with pytest.raises(MessageError, match="missing: 'rows'"):
        Upload.from_bytes(unnamed.to_bytes(), COMPANIES.upload(1))


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (agreed(items=7), "'rows' has 0 to 7, declared is 0 to 6"),
        (agreed(received={"mean": (8, 3), "deviation": (8, 2)}), "'tables/mean' has shape"),
        (agreed(received={"mean": (8, 2)}), "not declared: 'tables/deviation'"),
    ],
)
def test_downloads_of_rows_that_were_not_agreed_on_are_refused(expected, said):
    sent = told().of(torch.tensor([0]))
    with pytest.raises(MessageError, match=said):
        Download.from_bytes(sent.to_bytes(), expected.download(1))


def test_nobody_is_spoken_of_twice():
    with pytest.raises(MessageError, match="'rows' names somebody twice"):
        Upload.from_bytes(rows((4, 4, 7)).to_bytes(), COMPANIES.upload(1))
    twice = replace(told().of(torch.tensor([0])), rows=torch.tensor([4, 4, 7]))
    with pytest.raises(MessageError, match="'rows' names somebody twice"):
        Download.from_bytes(twice.to_bytes(), COMPANIES.download(1))


def test_bases_are_what_everybody_received():
    """Whole, also where each heard of some rows; nothing where nothing was sent."""
    some = told().of(torch.tensor([0, 1]))
    bases = COMPANIES.bases(some)
    assert bases["mean"][[0, 4, 7]].tolist() == told().tables["mean"][0, [0, 4, 7]].tolist()
    assert not bases["mean"][[1, 2, 3, 5, 6]].any()
    silent = COMPANIES.bases(Download({}, torch.zeros(3, dtype=torch.int64)))
    assert {name: tuple(base.shape) for name, base in silent.items()} == {"mean": (8, 2), "deviation": (8, 2)}
    assert not any(base.any() for base in silent.values())


def test_changes_against_several_versions_do_not_add_up():
    planned = replace(AGREED, plan={"items": "participants"})
    with pytest.raises(ValueError, match="several versions of 'items'"):
        planned.bases(download())
    assert torch.equal(planned.bases(download().of(torch.tensor([1, 2])))["items"], download().tables["items"][2])
