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
    sizes = {len(download().of(torch.tensor([place])).to_bytes()) for place in range(5)}
    assert sizes == {download().bytes_per_client}


def test_nothing_is_no_message():
    assert Download({}, torch.zeros(3, dtype=torch.int64)).bytes_per_client == 0


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
    with pytest.raises(MessageError, match="declared is 0 to 0"):
        Download.from_bytes(Download({}, torch.tensor([0, 1])).to_bytes(), kept.download(2))
