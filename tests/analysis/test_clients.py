"""What people have on their devices, all of them, some after others."""

import pytest
import torch

import confed
from confed.analysis import clients
from confed.testing import tiny, tiny_domains

FEW = {"dim": 4, "negatives": 15, "cutoffs": [5, 10]}


def run(tmp_path, method, data=None, **options):
    options = {**FEW, **options}
    return confed.run(method, data or tiny.interactions(), rounds=2, options=options, out=tmp_path, dtype="float64")


@pytest.mark.parametrize("together", [1, 5 * 60 * 8, 1 << 22])
@pytest.mark.parametrize(
    ("method", "options"),
    [("fed3cr", {"item_rate": 1.0}), ("fedrap", {}), ("pfedrec", {}), ("cofedrec", {"clusters": 3, "view": "local"})],
)
def test_how_many_are_looked_at_together_changes_nothing(tmp_path, monkeypatch, method, options, together):
    found = run(tmp_path, method, fraction=0.5, **options)
    everybody = list(range(tiny.USERS))
    whole, moved = found.replay(everybody), found.replay(everybody, everybody=True)
    monkeypatch.setattr(clients, "_VALUES", together)
    torch.testing.assert_close(clients.client_tables(found), whole.shared_tables())
    torch.testing.assert_close(clients.drift(found), moved.drift())
    shared, own = (torch.cat(parts) for parts in zip(*clients.two_scores(found), strict=True))
    for one, other in zip((shared, own), whole.two_scores(), strict=True):
        torch.testing.assert_close(one, other)
    assert clients.has_two_tables(found) == (method in ("fed3cr", "fedrap"))


def test_a_run_that_was_opened_again_shows_the_same(tmp_path):
    found = run(tmp_path, "pfedrec")
    again = confed.Run.open(found.folder.path)
    assert torch.equal(clients.client_tables(again), clients.client_tables(found))
    assert torch.equal(clients.drift(again), clients.drift(found))


def test_a_method_with_one_table_under_the_global_view_has_one_view(tmp_path):
    found = run(tmp_path, "fedmf")
    assert found.summary["view"] == "global"
    assert clients.two_scores(found) is None and not clients.has_two_tables(found)
    assert clients.drift(found).shape == (tiny.USERS,)


def test_clients_who_share_no_table_have_none_to_show(tmp_path):
    found = run(tmp_path, "local-only")
    assert clients.client_tables(found) is None and clients.drift(found) is None


@pytest.mark.parametrize("method", ["popularity", "fppdm"])
def test_where_people_are_no_clients_there_is_nothing_to_look_at(tmp_path, method):
    options = {"negatives": 15, "more_negatives": [], "cutoffs": [5, 10]}
    found = confed.run(method, tiny_domains.domains(), rounds=1, options=options, out=tmp_path)
    assert found.replay([0]) is None and list(clients.replays(found)) == []
    assert clients.two_scores(found) is None and not clients.has_two_tables(found)
    assert clients.client_tables(found) is None and clients.drift(found) is None
