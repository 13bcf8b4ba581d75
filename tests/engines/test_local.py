from dataclasses import replace

import numpy as np
import pytest
import torch

from confed.engines.local import LocalEngine
from confed.errors import ConfedError
from confed.methods.registry import method_named
from tests.conformance import Recorder
from tests.tiny import ITEMS, USERS, cut


def engine(method="pfedrec", chunk=None, **options):
    chosen = method_named(method)
    pieces = chosen.pieces(chosen.config("tiny", {"dim": 4, **options}), ITEMS)
    return LocalEngine(pieces, cut().training, 0, chunk=chunk, dtype="float64")


@pytest.mark.parametrize("chunk", [None, 1, 5, 100])
def test_chunks_hold_every_participant_once_longest_first(chunk):
    some = engine(chunk=chunk)
    chunks = list(some._chunks(np.arange(USERS)))
    together = np.concatenate(chunks)
    assert sorted(together.tolist()) == list(range(USERS))
    lengths = some.data.positives.lengths[together]
    assert (np.diff(lengths) <= 0).all()
    if chunk:
        assert all(len(c) == chunk for c in chunks[:-1])


@pytest.mark.parametrize(("value", "shown"), [(torch.nan, "nan"), (1e15, r"\d+(\.\d+)?e\+1\d")])
def test_a_loss_that_is_not_finite_or_explodes_stops_with_round_client_and_term(value, shown):
    some = engine()
    some.store.tensors["weight"][7] = value
    with pytest.raises(ConfedError, match=rf"round 4: the cross-entropy term of client 7 is {shown} \(1 client"):
        some.round(4, {})


def test_a_view_the_method_does_not_have_is_an_error():
    pieces = method_named("pfedrec").pieces(method_named("pfedrec").config("tiny", {}), ITEMS)
    with pytest.raises(ConfedError, match="view = 'pushed': this method can be scored under 'local' or 'global'"):
        LocalEngine(replace(pieces, view="pushed"), cut().training, 0)


def test_local_and_global_views_differ_after_training_and_agree_on_untouched_rows():
    some = engine()
    local, shared = Recorder(USERS, ITEMS), Recorder(USERS, ITEMS)
    some.round(1, {"local": local, "global": shared})
    assert not torch.allclose(local.scores, shared.scores)
    fresh = engine()
    download = fresh.pieces.strategy.download()
    cohort, _ = fresh._train(np.arange(USERS), download, 1)
    client = int(cohort.clients[-1])
    untouched = np.setdiff1d(np.arange(ITEMS), cohort.rows.touched[-1].numpy())
    assert len(untouched)
    table = download.tables["items"][0]
    expected = table[untouched] @ cohort.params["weight"][-1] + cohort.params["bias"][-1]
    torch.testing.assert_close(local.scores[client, untouched], expected)


def test_those_who_stay_away_are_scored_with_the_table_they_would_have_received():
    some = engine(fraction=0.5)
    absent = np.setdiff1d(np.arange(USERS), some.pieces.selection.participants(USERS, 0, 1))
    table = some.pieces.strategy.download().tables["items"][0]
    weight, bias = some.store.tensors["weight"].clone(), some.store.tensors["bias"].clone()
    recorder = Recorder(USERS, ITEMS)
    some.round(1, {"local": recorder})
    torch.testing.assert_close(recorder.scores[absent], weight[absent] @ table.T + bias[absent])


def test_bytes_count_participants_only():
    report = engine(fraction=0.5).round(1, {})
    assert report.participants == 12
    assert report.upload_bytes == report.download_bytes == 12 * ITEMS * 4 * 8


def test_a_method_without_shared_parameters_has_one_view():
    chosen = method_named("scalar")
    pieces = chosen.pieces(chosen.config("tiny", {}), ITEMS)
    assert LocalEngine(pieces, cut().training, 0).views == ("local",)


@pytest.mark.parametrize("method", ["fed3cr", "fedrap"])
def test_two_views_add_up_to_the_score(method):
    some = engine(method, item_rate=1.0)
    some.round(1, {})
    state = some.serving_state()
    clients = np.array([5, 0, 17])
    shared, own = some.two_scores(state, 1, clients)
    bias = state["client.bias"][clients] if method == "fedrap" else 0.0
    torch.testing.assert_close(shared + own - bias, some.serve(state, 1, clients))
    tables = some.two_tables(state, clients)
    assert [table.shape for table in tables] == [(3, ITEMS, 4)] * 2
    torch.testing.assert_close(tables[1], state["client.own"][clients])


def test_the_two_views_of_one_table_are_before_and_after_training():
    some = engine("pfedrec")
    some.round(1, {})
    recorder = Recorder(USERS, ITEMS)
    some.round(2, {"local": recorder})
    state = some.serving_state()
    clients = np.array([20, 3, 11])
    shared, own = some.two_scores(state, 2, clients)
    torch.testing.assert_close(own, recorder.scores[clients])
    head = [some.store.tensors[name][clients] for name in ("weight", "bias")]
    torch.testing.assert_close(shared, head[0] @ state["server.items"].T + head[1])
    assert some.two_tables(state, clients) is None


def test_a_method_with_one_table_under_the_global_view_has_one_view():
    some = engine("fedmf")
    some.round(1, {})
    assert some.two_scores(some.serving_state(), 1, np.arange(3)) is None


@pytest.mark.parametrize("chunk", [3, None])
def test_drift_is_what_the_next_round_of_training_changes(chunk):
    some = engine("fedmf", chunk=chunk)
    some.round(1, {})
    state = {name: value.clone() for name, value in some.state().items()}
    drift = some.drift(state, 1)
    some.load(state)
    cohort, _ = some._train(np.arange(USERS), some.pieces.strategy.download(), 2)
    moved = cohort.upload(["items"]).tensors["items"].dense() - state["server.items"]
    expected = torch.empty(USERS, dtype=torch.float64)
    expected[cohort.clients] = moved.square().mean(dim=(1, 2)).sqrt()
    torch.testing.assert_close(drift, expected)
    assert engine("local-only").drift(engine("local-only").state(), 1) is None


def test_upload_parts_say_what_the_bytes_are():
    assert engine("fedmf").upload_parts() == {"item tables": ITEMS * 4 * 8}
    parts = engine("fed3cr", layers=2).upload_parts()
    generator = (8 * 16 + 16) + (16 * 16 + 16)
    assert parts == {"item tables": ITEMS * 4 * 8, "networks": generator * 8}
    assert engine("local-only").upload_parts() == {}
