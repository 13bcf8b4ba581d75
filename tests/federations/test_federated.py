"""A round of people and their server, in one process."""

import numpy as np
import pytest
import torch

from confed.data.shares import Roster
from confed.errors import ConfedError, MessageError
from confed.federations.federated import Federated
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.testing import Recorder, assert_equal_states
from confed.testing.in_bytes import federated_in_bytes
from confed.testing.tiny import ITEMS, USERS, cut


def terms(method="pfedrec", chunk=None, view=None, **options):
    config = method_named(method).config(None, {"dim": 4, **options})
    return Terms(config, seed=0, dtype="float64", chunk=chunk, view=view)


def trainer(method="pfedrec", judges=None, **options):
    return method_named(method).trainer(terms(method, **options), cut(), judges or {})


def people(some):
    return some.federation.site.gateway


@pytest.mark.parametrize(("value", "shown"), [(torch.nan, "not finite"), (1e15, r"\d+(\.\d+)?e\+1\d")])
def test_a_loss_that_is_not_finite_or_explodes_stops_with_client_and_term(value, shown):
    some = trainer()
    people(some).store.tensors["weight"][7] = value
    with pytest.raises(ConfedError, match=rf"the cross-entropy term of client 7 is {shown}: .*\(1 client"):
        some.round(4)


def test_a_view_the_method_does_not_have_is_an_error():
    method = method_named("pfedrec")
    asked = "view = 'pushed': pfedrec can be scored under 'local' or 'global'"
    for build in (
        lambda: trainer(view="pushed"),
        lambda: method.server(terms(view="pushed"), Roster.of(cut())),
        lambda: method.check(terms(view="pushed"), cut()),
    ):
        with pytest.raises(ConfedError, match=asked):
            build()


def test_local_and_global_views_differ_after_training_and_agree_on_untouched_rows():
    recorders = Recorder.of(cut())
    trainer(judges=recorders).round(1, ["local", "global"])
    local, shared = (card.scores for card in recorders[""].cards)
    assert not torch.allclose(local, shared)
    fresh = trainer()
    download = fresh.server.download()
    cohort = people(fresh).train_chunk(1, download, np.arange(USERS))
    client = int(cohort.clients[-1])
    untouched = np.setdiff1d(np.arange(ITEMS), cohort.rows.touched[-1].numpy())
    assert len(untouched)
    table = download.tables["items"][0]
    expected = table[untouched] @ cohort.params["weight"][-1] + cohort.params["bias"][-1]
    torch.testing.assert_close(local[client, untouched], expected)


def test_those_who_stay_away_are_scored_with_the_table_they_would_have_received():
    recorders = Recorder.of(cut())
    some = trainer(judges=recorders, fraction=0.5)
    absent = np.setdiff1d(np.arange(USERS), some.server.selection.participants(np.arange(USERS), 0, 1))
    table = some.server.download().tables["items"][0]
    weight, bias = (people(some).store.tensors[name].clone() for name in ("weight", "bias"))
    some.round(1, ["local"])
    torch.testing.assert_close(recorders[""].scores[absent], weight[absent] @ table.T + bias[absent])


def test_turns_are_served_one_after_another_with_what_the_earlier_ones_left():
    recorders, by_hand = Recorder.of(cut()), Recorder.of(cut())
    taken, alone = trainer(judges=recorders), trainer(judges=by_hand)
    turns = torch.split(torch.arange(USERS), 9)
    taken.server.strategy.turns = lambda clients, number: iter(turns)
    done = taken.round(1, ["local", "global"])
    losses = 0.0
    for turn in turns:
        download = alone.server.download()
        found = alone.federation.train(1, download, turn, examine=True)
        alone.server.strategy.aggregate(alone._uploads(found.sums, download, turn), 1)
        losses += found.loss
    assert_equal_states(taken.state(), alone.state(), tolerance=0)
    assert (done.participants, done.loss) == (USERS, pytest.approx(losses / USERS))
    assert done.download_bytes == USERS * len(taken.server.download().of(torch.tensor([0])).to_bytes())
    local, shared = (card.scores for card in recorders[""].cards)
    assert torch.equal(local, by_hand[""].scores) and not torch.equal(local, shared)


def test_bytes_count_participants_only():
    some = trainer(fraction=0.5)
    each = len(some.server.download().of(torch.tensor([0])).to_bytes())
    done = some.round(1)
    assert done.participants == 12
    assert done.download_bytes == 12 * each
    assert 0 < done.upload_bytes / 12 - ITEMS * 4 * 8 < 500


def test_tables_that_clients_keep_are_sent_once_to_everybody():
    """Before the first round; then those get one who are in a group."""
    some = trainer("cofedrec", clusters=3, fraction=0.5)
    first, second = some.round(1), some.round(2)
    push = some.server.strategy.push()
    table = len(push.of(torch.nonzero(push.table_of >= 0)[:1, 0]).to_bytes()) if push.versions else ITEMS * 4 * 8
    assert first.download_bytes > USERS * ITEMS * 4 * 8
    assert second.download_bytes < 12 * 600 + (USERS + 1) * table < first.download_bytes + 12 * 600
    assert some.server.first_tables > USERS * ITEMS * 4 * 8


def test_a_method_without_shared_parameters_has_one_view():
    method = method_named("scalar")
    assert method.trainer(Terms(method.config(None, {}), seed=0), cut(), {}).views == ("local",)


def test_a_round_without_views_examines_nobody():
    recorders = Recorder.of(cut())
    done = trainer(judges=recorders).round(1)
    assert not recorders[""].cards and not done.tallies
    some = trainer(judges=recorders)
    assert set(some.round(1, some.views).tallies) == {"local", "global"}
    assert len(recorders[""].cards) == 2


@pytest.mark.parametrize("options", [{"item_rate": 1e15}, {"learning_rate": 1e15}])
def test_what_explodes_in_the_last_step_is_neither_kept_nor_sent(options):
    some = trainer("fed3cr", variant="C1", local_epochs=1, **options)
    store, everybody = people(some).store, torch.arange(USERS)
    before = store.read_tables("own", everybody)
    with pytest.raises(ConfedError, match="the parameter"):
        some.round(1)
    untouched = store.read_tables("own", everybody) == before
    assert untouched.flatten(1).all(dim=1).any()


def test_upload_parts_say_what_the_bytes_are():
    def parts(method, **options):
        return method_named(method).upload_parts(terms(method, **options), cut())

    assert parts("fedmf") == {"item tables": ITEMS * 4 * 8}
    generator = (8 * 16 + 16) + (16 * 16 + 16)
    assert parts("fed3cr", layers=2) == {"item tables": ITEMS * 4 * 8, "networks": generator * 8}
    assert parts("local-only") == {}


@pytest.mark.parametrize("some", [1, 5])
def test_as_many_send_as_take_part(some):
    """Who sends twice, or is not heard of, is missed in the sums."""
    found = trainer()
    train = people(found).train

    def fewer(number, download, clients, cards):
        yield from train(number, download, clients[:-some], cards)

    people(found).train = fewer
    with pytest.raises(MessageError, match=f"{USERS - some} clients sent something, {USERS} take part"):
        found.round(1)
    people(found).train = lambda *asked: [*train(*asked), *train(*asked)]
    with pytest.raises(MessageError):
        found.round(1)


def kinds():
    """A trainer of clients who keep tables, which are pushed to some of them: in this process, and over bytes."""
    options = terms("cofedrec", clusters=3, view="pushed")
    held = [torch.arange(0, USERS, 2), torch.arange(1, USERS, 2)]
    yield lambda: method_named("cofedrec").trainer(options, cut(), {})
    yield lambda: federated_in_bytes(method_named("cofedrec"), options, cut(), None, held)


@pytest.mark.parametrize("make", list(kinds()), ids=["local", "bytes"])
def test_a_state_that_is_loaded_replaces_all_that_was(make):
    """Also what the server had just pushed, and nobody had received yet."""
    reference = make()
    reference.round(1)
    state = {name: value.clone() for name, value in reference.state().items()}
    reference.round(2)
    other = make()
    for number in (1, 2, 3):
        other.round(number)
    assert other.server.strategy.push().versions
    other.load(state)
    other.round(2)
    assert_equal_states(other.state(), reference.state(), tolerance=0)


@pytest.mark.parametrize("make", list(kinds()), ids=["local", "bytes"])
def test_what_is_served_is_what_the_round_left_whether_it_was_examined_or_not(make):
    some = make()
    some.round(1)
    assert some.server.strategy.push().versions
    serving = some.serving_state()
    state = some.state()
    assert_equal_states(serving, {name: state[name] for name in serving}, tolerance=0)


@pytest.mark.parametrize("method", ["pfedrec", "cofedrec"])
def test_a_serving_state_is_a_copy(method):
    some = trainer(method, judges=Recorder.of(cut()))
    some.round(1, some.views)
    serving = some.serving_state()
    kept = {name: value.clone() for name, value in serving.items()}
    some.round(2, some.views)
    assert_equal_states(serving, kept, tolerance=0)


def test_the_trainer_of_a_method_is_its_server_and_a_site_of_all():
    some = trainer()
    assert isinstance(some, Federated)
    assert torch.equal(some.server.ids, people(some).ids)
    assert some.server.agreement == people(some).agreement
    assert (some.view, some.views) == (some.server.view, some.server.views)
