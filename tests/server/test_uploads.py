import pytest
import torch

from confed.errors import MessageError
from confed.messages import TableRows, Upload
from confed.server.uploads import KeptUploads, SummedUploads

BEFORE = torch.arange(8.0, dtype=torch.float64).view(4, 2)
AFTER = [BEFORE.clone() for _ in range(3)]
AFTER[0][1] += 3.0
AFTER[1][1] += 5.0
AFTER[1][2] -= 1.0
INDEX = torch.tensor([[1, 4], [1, 2], [0, 4]])
HELD = torch.stack([torch.isin(torch.arange(4), row) for row in INDEX])
SAMPLES = torch.tensor([1, 3, 4])
CLIENTS = torch.arange(3)
CHUNKS = [((0, 1, 2),), ((0,), (1,), (2,)), ((2, 0), (1,))]


def fill(kept, chunks=((0, 1, 2),)):
    """Three clients; 0 changed row 1, 1 changed rows 1 and 2, 2 drew row 0 and left it as it was."""
    for chunk in chunks:
        some = torch.tensor(chunk)
        rows = torch.stack([torch.cat([AFTER[c], torch.zeros(1, 2)])[INDEX[c]] for c in chunk])
        base_of = torch.zeros(len(some), dtype=torch.int64)
        table = TableRows(BEFORE[None], base_of, INDEX[some], rows)
        facts = {"samples": SAMPLES[some], "held": HELD[some], "loss": some.double()}
        kept.add(Upload(some, {"items": table, "net": some[:, None].double() * 10, **facts}))
    return kept


def kept(chunks=((0, 1, 2),)):
    return fill(KeptUploads({"items": BEFORE, "net": torch.zeros(1, dtype=torch.float64)}, CLIENTS), chunks)


def expected(over, clients=(0, 1, 2)):
    """The definition, one client after another."""
    change = torch.stack([AFTER[c] - BEFORE for c in clients])
    if over == "samples":
        weights = SAMPLES[list(clients)].double()
        return BEFORE + (change * weights[:, None, None]).sum(0) / weights.sum()
    if over == "holders":
        counts = torch.stack([torch.isin(torch.arange(4), INDEX[c]) for c in clients]).sum(0).clamp(min=1)
        return BEFORE + change.sum(0) / counts[:, None]
    return BEFORE + (change.sum(0) if over == "sum" else change.mean(0))


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("over", ["participants", "samples", "holders", "sum"])
def test_every_rule_equals_its_definition(over, chunks):
    summed = fill(SummedUploads({"items": over}, {"items": BEFORE}, CLIENTS), chunks)
    torch.testing.assert_close(summed.mean("items", over=over), expected(over))
    torch.testing.assert_close(kept(chunks).mean("items", over=over), expected(over))


@pytest.mark.parametrize("over", ["participants", "samples", "holders", "sum"])
@pytest.mark.parametrize("chunks", CHUNKS)
def test_means_over_a_group(over, chunks):
    group = kept(chunks).mean("items", over=over, where=torch.tensor([1, 2]))
    torch.testing.assert_close(group, expected(over, (1, 2)))


@pytest.mark.parametrize("chunks", CHUNKS)
def test_rows_of_single_clients(chunks):
    uploads = kept(chunks)
    rows = uploads.rows("items", torch.tensor([2, 1]), where=torch.tensor([2, 0]))
    for client, found in zip((2, 0), rows, strict=True):
        assert torch.equal(found, AFTER[client][[2, 1]])


def test_what_nobody_sent_is_not_made_up():
    with pytest.raises(ValueError, match="sent nothing"):
        kept(((0, 1),)).rows("items", torch.tensor([1]), where=torch.tensor([2]))
    summed = SummedUploads({"net": "samples"}, {"net": torch.zeros(1, dtype=torch.float64)}, CLIENTS)
    with pytest.raises(ValueError, match="did not send their number"):
        summed.add(bare("net", torch.ones(1, 1, dtype=torch.float64)))
    counted = SummedUploads({"items": "holders"}, {"items": BEFORE}, CLIENTS)
    with pytest.raises(ValueError, match="did not say which rows they hold"):
        counted.add(bare("items", BEFORE[None]))


def bare(name, tensor, client=0):
    """An upload of one client, without what a weighted mean needs."""
    return Upload(torch.tensor([client]), {name: tensor, "loss": torch.zeros(1)})


def test_networks_are_averaged_too():
    summed = fill(SummedUploads({"net": "samples"}, {"net": torch.zeros(1, dtype=torch.float64)}, CLIENTS), CHUNKS[1])
    assert summed.mean("net", over="samples").tolist() == [(0 * 1 + 10 * 3 + 20 * 4) / 8]
    assert kept().mean("net").tolist() == [10.0]


def test_sums_know_nothing_about_single_clients():
    summed = fill(SummedUploads({"items": "participants"}, {"items": BEFORE}, CLIENTS))
    with pytest.raises(ValueError, match="only the planned sum"):
        summed.mean("items", where=torch.tensor([1]))
    with pytest.raises(ValueError, match="only the planned sum"):
        summed.mean("items", over="holders")
    with pytest.raises(ValueError, match="not the uploads of single clients"):
        summed.rows("items", torch.tensor([1]), where=torch.tensor([0]))


def test_participants_and_bytes_add_up():
    uploads = kept(((0, 1), (2,)))
    assert (uploads.participants, uploads.loss) == (3, 0 + 1 + 2)
    assert uploads.nbytes == sum(len(upload.to_bytes()) for upload in kept(((0,), (1,), (2,)))._kept)
    tensors = BEFORE.numel() * 8 + 4 + 4 * 8
    assert 3 * tensors < uploads.nbytes < 3 * (tensors + 700)


@pytest.mark.parametrize("over", ["participants", "samples", "holders", "sum"])
def test_sums_made_apart_are_merged(over):
    """Two holders of clients add up what they have; the server adds up the two."""
    whole, server = (SummedUploads({"items": over}, {"items": BEFORE}, CLIENTS) for _ in range(2))
    fill(whole)
    for chunk in ((2, 0), (1,)):
        server.merge(fill(SummedUploads({"items": over}, {"items": BEFORE}, CLIENTS), (chunk,)).sums())
    torch.testing.assert_close(server.mean("items", over=over), whole.mean("items", over=over))
    for name in ("participants", "loss", "nbytes"):
        assert getattr(server, name) == getattr(whole, name)
    with pytest.raises(MessageError, match="6 clients sent something, 3 take part"):
        server.merge(whole.sums())


def test_nobody_sends_who_was_not_asked_and_nobody_twice():
    for uploads in (kept(((0, 1),)), fill(SummedUploads({"items": "sum"}, {"items": BEFORE}, CLIENTS), ((0, 1),))):
        with pytest.raises(MessageError, match="a second upload of client 1"):
            fill(uploads, ((1, 2),))
        for stranger in (-1, 3, 2**60):
            with pytest.raises(MessageError, match=f"client {stranger}, who does not take part"):
                uploads.add(bare("items", BEFORE[None], stranger))
        assert uploads.participants == 2


def test_an_upload_of_nobody_changes_nothing():
    uploads = kept()
    before = uploads.mean("net")
    nobody = {"net": torch.zeros(0, 1, dtype=torch.float64), "loss": torch.zeros(0)}
    uploads.add(Upload(torch.zeros(0, dtype=torch.int64), nobody))
    assert torch.equal(uploads.mean("net"), before)
    summed = SummedUploads({"net": "sum"}, {"net": torch.zeros(1, dtype=torch.float64)}, CLIENTS)
    fill(summed)
    summed.add(Upload(torch.zeros(0, dtype=torch.int64), nobody))
    assert summed.participants == 3
