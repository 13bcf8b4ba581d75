from dataclasses import replace

import numpy as np
import pytest
import torch

from confed.engines.local import LocalEngine
from confed.errors import ConfedError
from confed.methods.registry import method_named
from tests.conformance import Recorder
from tests.tiny import ITEMS, USERS, cut


def engine(method="pfedrec", chunk=None, view=None, **options):
    chosen = method_named(method)
    pieces = chosen.pieces(chosen.config("tiny", {"dim": 4, **options}), ITEMS)
    pieces = replace(pieces, view=view or pieces.view)
    return LocalEngine(pieces, cut().training, 0, chunk=chunk, dtype="float64")


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
    cohort = fresh.gateway.train_chunk(1, download, np.arange(USERS))
    client = int(cohort.clients[-1])
    untouched = np.setdiff1d(np.arange(ITEMS), cohort.rows.touched[-1].numpy())
    assert len(untouched)
    table = download.tables["items"][0]
    expected = table[untouched] @ cohort.params["weight"][-1] + cohort.params["bias"][-1]
    torch.testing.assert_close(local.scores[client, untouched], expected)


def test_those_who_stay_away_are_scored_with_the_table_they_would_have_received():
    some = engine(fraction=0.5)
    absent = np.setdiff1d(np.arange(USERS), some.pieces.selection.participants(np.arange(USERS), 0, 1))
    table = some.pieces.strategy.download().tables["items"][0]
    weight, bias = some.store.tensors["weight"].clone(), some.store.tensors["bias"].clone()
    recorder = Recorder(USERS, ITEMS)
    some.round(1, {"local": recorder})
    torch.testing.assert_close(recorder.scores[absent], weight[absent] @ table.T + bias[absent])


def test_bytes_count_participants_only():
    some = engine(fraction=0.5)
    each = some.pieces.strategy.download().bytes_per_client
    report = some.round(1, {})
    assert report.participants == 12
    assert report.download_bytes == 12 * each
    assert 0 < report.upload_bytes / 12 - ITEMS * 4 * 8 < 500


def test_a_method_without_shared_parameters_has_one_view():
    chosen = method_named("scalar")
    pieces = chosen.pieces(chosen.config("tiny", {}), ITEMS)
    assert LocalEngine(pieces, cut().training, 0).views == ("local",)


def served(some, number=2):
    """The scores of round `number`, and the state they are served from."""
    for earlier in range(1, number):
        some.round(earlier, {})
    recorder = Recorder(USERS, ITEMS)
    some.round(number, {some.view: recorder})
    return recorder.scores, some.serving_state()


def in_one(chunks):
    return [torch.cat(parts) for parts in zip(*chunks, strict=True)]


@pytest.mark.parametrize("view", ["global", "local"])
@pytest.mark.parametrize("fraction", [1.0, 0.25])
@pytest.mark.parametrize("method", ["fed3cr", "fedrap"])
def test_two_views_add_up_to_the_score(method, view, fraction):
    some = engine(method, view=view, item_rate=1.0, fraction=fraction)
    scores, state = served(some)
    shared, own = in_one(some.two_scores(state, 2))
    bias = some.store.tensors["bias"] if method == "fedrap" else 0.0
    torch.testing.assert_close(shared + own - bias, scores)
    clients = np.array([5, 0, 17])
    tables = some.two_tables(state, 2, clients)
    assert [table.shape for table in tables] == [(3, ITEMS, 4)] * 2
    torch.testing.assert_close(tables[1], some.store.tensors["own"][clients])


@pytest.mark.parametrize("fraction", [1.0, 0.25])
def test_the_two_views_of_one_table_are_before_and_after_training(fraction):
    some = engine("pfedrec", fraction=fraction)
    scores, state = served(some)
    shared, own = in_one(some.two_scores(state, 2))
    clients = some.pieces.selection.participants(np.arange(USERS), 0, 2)
    torch.testing.assert_close(own, scores[clients])
    head = [some.store.tensors[name][clients] for name in ("weight", "bias")]
    torch.testing.assert_close(shared, head[0] @ state["server.items"].T + head[1])
    assert some.two_tables(state, 2, clients) is None


def test_a_method_with_one_table_under_the_global_view_has_one_view():
    some = engine("fedmf")
    some.round(1, {})
    assert some.two_scores(some.serving_state(), 1) is None


@pytest.mark.parametrize("chunk", [3, None])
@pytest.mark.parametrize(("view", "trained"), [("global", 2), ("local", 1)])
def test_drift_is_what_a_round_of_training_changes(chunk, view, trained):
    """The next one, or the chosen one again where the state is that before it."""
    some = engine("fedmf", chunk=chunk, view=view)
    some.round(1, {})
    state = some.serving_state()
    drift = some.drift(state, 1)
    some.load(state)
    cohort = some.gateway.train_chunk(trained, some.pieces.strategy.download(), np.arange(USERS))
    moved = cohort.upload(["items"]).tensors["items"].dense() - state["server.items"]
    expected = torch.empty(USERS, dtype=torch.float64)
    expected[cohort.clients] = moved.square().mean(dim=(1, 2)).sqrt()
    torch.testing.assert_close(drift, expected)
    assert engine("local-only").drift(engine("local-only").state(), 1) is None


@pytest.mark.parametrize("options", [{"item_rate": 1e30}, {"learning_rate": 1e30}])
def test_what_explodes_in_the_last_step_is_neither_kept_nor_sent(options):
    some = engine("fed3cr", variant="C1", local_epochs=1, **options)
    before = {name: value.clone() for name, value in some.store.tensors.items()}
    with pytest.raises(ConfedError, match="round 1: the parameter"):
        some.round(1, {})
    untouched = some.store.tensors["own"] == before["own"]
    assert untouched.flatten(1).all(dim=1).any()


def test_upload_parts_say_what_the_bytes_are():
    assert engine("fedmf").upload_parts() == {"item tables": ITEMS * 4 * 8}
    parts = engine("fed3cr", layers=2).upload_parts()
    generator = (8 * 16 + 16) + (16 * 16 + 16)
    assert parts == {"item tables": ITEMS * 4 * 8, "networks": generator * 8}
    assert engine("local-only").upload_parts() == {}
