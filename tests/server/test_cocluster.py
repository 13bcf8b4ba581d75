import numpy as np
import pytest
import torch

from confed.federations.site import Site
from confed.messages import Agreement, HeldTables, Upload
from confed.server.strategies import Average, CoCluster
from confed.server.uploads import OpenUploads
from tests.federations.three import Three

CLIENTS, ITEMS, WIDTH = 9, 12, 3


def tables(seed=0):
    """Two kinds of clients: 0 to 4 agree with one another, 5 to 8 do not with anybody."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(ITEMS, WIDTH, generator=generator, dtype=torch.float64)
    noise = torch.randn(CLIENTS, ITEMS, WIDTH, generator=generator, dtype=torch.float64)
    scale = torch.tensor([0.01] * 5 + [4.0] * 4, dtype=torch.float64)
    return common + scale[:, None, None] * noise


def round_of(strategy, held, number=1, participants=None, chunks=2, first=0, step=1):
    """A round of clients whose ids are counted from `first` in steps of `step`, at one site."""
    places = torch.arange(CLIENTS) if participants is None else torch.tensor(participants)
    sent = [
        Upload(first + step * some, {"items": HeldTables(held, some), "loss": torch.zeros(len(some))})
        for some in places.chunk(chunks)
    ]
    kept = {"items": (ITEMS, WIDTH)}
    agreed = Agreement(ITEMS, torch.float64, {}, kept, strategy.uploads, strategy.plan, strategy.needs, strategy.side)
    site = Site(lambda: Three(agreed, sent), {}, rebuilt=False)
    site.gateway.ids = first + step * torch.arange(CLIENTS)
    download = strategy.download(torch.arange(2))
    sums = site.train(number, download.of(torch.arange(CLIENTS)), places, None, examine=False).sums
    strategy.aggregate(OpenUploads(sums, strategy.plan, agreed.bases(download), first + step * places, site), number)
    return strategy.push()


def started(clusters=3, seed=0, **options):
    strategy = CoCluster(("items",), clusters, Average({}), **options)
    strategy.start({"items": torch.zeros(ITEMS, WIDTH, dtype=torch.float64)}, torch.arange(CLIENTS), seed)
    return strategy


@pytest.mark.parametrize("seed", range(8))
def test_the_group_is_those_before_the_elbow_and_receives_its_exact_mean(seed):
    strategy, held = started(seed=seed), tables()
    push = round_of(strategy, held)
    notes, state = strategy.notes(), strategy.state()
    rows = torch.nonzero(state["membership"] == notes["category"])[:, 0]
    cosine = torch.nn.functional.cosine_similarity
    scores = torch.stack([cosine(held[notes["core"], rows], held[u, rows], dim=1).sum() for u in range(CLIENTS)])
    order = sorted(range(CLIENTS), key=lambda u: -float(scores[u]))
    members = sorted(order[: notes["elbow"] + 1]) if notes["elbow"] else []
    assert torch.nonzero(push.table_of >= 0)[:, 0].tolist() == members
    assert notes["group"] == len(members)
    torch.testing.assert_close(state["scores"], scores.sort(descending=True).values)
    torch.testing.assert_close(state["mean_items"], held.mean(dim=0))
    if members:
        torch.testing.assert_close(push.tables["items"][0], held[members].mean(dim=0))
        assert push.nbytes == len(members) * len(push.of(torch.tensor(members[:1])).to_bytes())


def test_who_was_in_is_a_bit_for_each_client():
    strategy = started()
    push = round_of(strategy, tables())
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(strategy.notes()["members"]), dtype=np.uint8))[:CLIENTS]
    assert bits.astype(bool).tolist() == (push.table_of >= 0).tolist()


def test_like_minded_clients_come_first_whenever_one_of_them_is_the_core():
    groups = []
    for seed in range(20):
        strategy = started(seed=seed)
        push = round_of(strategy, tables())
        if strategy.notes()["core"] < 5:
            groups.append(torch.nonzero(push.table_of >= 0)[:, 0].tolist())
    assert groups and all(set(range(5)) <= set(group) for group in groups)


def test_categories_travel_from_the_second_round_on():
    strategy = started()
    assert not strategy.download(torch.arange(2)).side
    round_of(strategy, tables())
    download = strategy.download(torch.arange(2))
    assert download.side["membership"].dtype == torch.uint8
    assert 0 < download.bytes_to(torch.tensor([0])) - ITEMS < 300
    assert torch.equal(download.alike, strategy.push().table_of)


def test_equal_tables_make_no_group():
    strategy = started()
    push = round_of(strategy, tables()[:1].expand(CLIENTS, -1, -1).clone())
    assert not push.versions and not (push.table_of >= 0).any() and strategy.notes()["group"] == 0


def test_a_single_participant_makes_no_group():
    strategy = started()
    push = round_of(strategy, tables(), participants=[4], chunks=1)
    assert not push.versions
    torch.testing.assert_close(strategy.state()["mean_items"], tables()[4])


def test_zero_tables_are_alike_in_nothing():
    held = tables()
    held[3] = 0.0
    strategy = started()
    round_of(strategy, held)
    assert bool(torch.isfinite(strategy.state()["scores"]).all())


def test_more_clusters_than_distinct_items_never_draws_an_empty_category():
    held = torch.ones(CLIENTS, ITEMS, WIDTH, dtype=torch.float64) * torch.arange(1.0, CLIENTS + 1)[:, None, None]
    for seed in range(5):
        strategy = started(clusters=7, seed=seed)
        round_of(strategy, held)
        assert strategy.notes()["category_items"] == ITEMS


def test_absent_clients_are_neither_asked_nor_pushed():
    strategy = started()
    push = round_of(strategy, tables(), participants=[7, 1, 2, 3, 0])
    assert not (push.table_of[[4, 5, 6, 8]] >= 0).any()
    assert strategy.notes()["core"] in (0, 1, 2, 3, 7)
    torch.testing.assert_close(strategy.state()["mean_items"], tables()[[7, 1, 2, 3, 0]].mean(dim=0))


def test_more_categories_give_nested_groups_each_with_its_own_mean():
    held, most = tables(), 0
    for seed in range(10):
        once, twice = started(seed=seed), started(seed=seed, categories_per_round=2)
        coarse, fine = round_of(once, held), round_of(twice, held)
        assert not ((fine.table_of >= 0) & (coarse.table_of < 0)).any()
        for version in range(fine.versions):
            members = torch.nonzero(fine.table_of == version)[:, 0]
            assert len(members) > 1
            torch.testing.assert_close(fine.tables["items"][version], held[members].mean(dim=0))
        assert sum(twice.notes()["groups"]) == twice.notes()["group"] <= once.notes()["group"]
        most = max(most, fine.versions)
    assert most > 1


def test_state_survives():
    strategy, fresh = started(), started()
    round_of(strategy, tables())
    fresh.load(strategy.state())
    for one in (strategy, fresh):
        round_of(one, tables(seed=1), number=2)
    assert strategy.notes() == fresh.notes()
    assert all(torch.equal(value, fresh.state()[name]) for name, value in strategy.state().items())


def test_ids_say_who_is_in_a_group_whatever_their_order():
    """The same clients, whom the server lists in another order, under ids that are no places."""
    plain, held = started(), tables()
    push = round_of(plain, held)
    listed = torch.randperm(CLIENTS, generator=torch.Generator().manual_seed(1))
    other = CoCluster(("items",), 3, Average({}))
    other.start({"items": torch.zeros(ITEMS, WIDTH, dtype=torch.float64)}, 2**40 + 10 * listed, 0)
    round_of(other, held, chunks=1, first=2**40, step=10)
    assert (push.table_of >= 0).any()
    assert other.push().table_of.tolist() == push.table_of[listed].tolist()
    assert other.notes()["core"] == 2**40 + 10 * plain.notes()["core"]
