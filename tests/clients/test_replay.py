"""People as they were scored in a round, rebuilt from what was kept of it."""

import numpy as np
import pytest
import torch

from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.testing import Recorder
from confed.testing.tiny import ITEMS, USERS, cut

EVERYBODY = torch.arange(USERS)


class Kept:
    """A method after a round: how it was scored, and the state it is served from."""

    def __init__(self, method, number=2, chunk=None, view=None, **options):
        self.method, self.number = method_named(method), number
        config = self.method.config(None, {"dim": 4, **options})
        self.terms = Terms(config, seed=0, dtype="float64", chunk=chunk, view=view)
        recorders = Recorder.of(cut())
        self.trainer = self.method.trainer(self.terms, cut(), recorders)
        for earlier in range(1, number):
            self.trainer.round(earlier)
        self.trainer.round(number, [self.trainer.view])
        self.scores = recorders[""].scores
        self.state = self.trainer.serving_state()

    @property
    def store(self):
        return self.trainer.federation.site.gateway.store.tensors

    def table(self, name):
        return self.trainer.federation.site.gateway.store.read_tables(name, torch.arange(USERS))

    @property
    def participants(self):
        return self.trainer.server.selection.participants(np.arange(USERS), 0, self.number)

    def replay(self, clients=EVERYBODY, **how):
        return self.method.replay(self.terms, cut(), self.state, self.number, clients, **how)


@pytest.mark.parametrize("view", ["global", "local"])
@pytest.mark.parametrize("fraction", [1.0, 0.25])
@pytest.mark.parametrize("method", ["fed3cr", "fedrap"])
def test_two_views_add_up_to_the_score(method, view, fraction):
    kept = Kept(method, view=view, item_rate=1.0, fraction=fraction)
    shared, own = kept.replay().two_scores()
    bias = kept.store["bias"] if method == "fedrap" else 0.0
    torch.testing.assert_close(shared + own - bias, kept.scores)
    clients = torch.tensor([5, 0, 17])
    tables = kept.replay(clients).two_tables()
    assert [table.shape for table in tables] == [(3, ITEMS, 4)] * 2
    torch.testing.assert_close(tables[1], kept.table("own")[clients])


@pytest.mark.parametrize("fraction", [1.0, 0.25])
def test_the_two_views_of_one_table_are_before_and_after_training(fraction):
    """Of those who trained."""
    kept = Kept("pfedrec", fraction=fraction)
    replay = kept.replay()
    shared, own = replay.two_scores()
    clients = kept.participants
    assert torch.nonzero(replay.trained)[:, 0].tolist() == clients.tolist()
    torch.testing.assert_close(own, kept.scores[clients])
    head = [kept.store[name][clients] for name in ("weight", "bias")]
    torch.testing.assert_close(shared, head[0] @ kept.state["server.items"].T + head[1])
    assert replay.two_tables() is None


def test_a_method_with_one_table_under_the_global_view_has_one_view():
    """Nobody is trained again, and what was received is what was scored with."""
    replay = Kept("fedmf", number=1).replay()
    assert not replay.trained.any() and replay.two_tables() is None
    assert all(len(scores) == 0 for scores in replay.two_scores())


@pytest.mark.parametrize("chunk", [3, None])
@pytest.mark.parametrize(("view", "trained"), [("global", 2), ("local", 1)])
def test_drift_is_what_a_round_of_training_changes(chunk, view, trained):
    """The next one, or the chosen one again where the state is that before it."""
    kept = Kept("fedmf", number=1, chunk=chunk, view=view)
    drift = kept.replay(everybody=True).drift()
    kept.trainer.load(kept.state)
    gateway = kept.trainer.federation.site.gateway
    cohort = gateway.train_chunk(trained, kept.trainer.server.download(), np.arange(USERS))
    moved = cohort.upload(["items"]).tensors["items"].dense() - kept.state["server.items"]
    expected = torch.empty(USERS, dtype=torch.float64)
    expected[cohort.clients] = moved.square().mean(dim=(1, 2)).sqrt()
    torch.testing.assert_close(drift, expected)
    assert Kept("local-only", number=1).replay(everybody=True).drift() is None


@pytest.mark.parametrize("fraction", [1.0, 0.25])
def test_nobody_drifts_who_stays_away_or_is_served_what_the_server_has(fraction):
    drift = Kept("fedmf", view="global", fraction=fraction).replay().drift()
    assert not drift.any()
    kept = Kept("fedmf", view="local", fraction=fraction)
    assert torch.nonzero(kept.replay().drift())[:, 0].tolist() == kept.participants.tolist()


@pytest.mark.parametrize("view", ["local", "pushed"])
def test_shared_tables_are_those_clients_were_scored_with(view):
    """As trained, which is what they send, or as the server's step left them; side by side if there are several."""
    kept = Kept("cofedrec", view=view, clusters=3)
    table = kept.replay().shared_tables()
    assert table.shape == (USERS, ITEMS, 4)
    if view == "pushed":
        torch.testing.assert_close(table, kept.table("items"))
    else:
        weight, bias = (kept.store[name] for name in ("weight", "bias"))
        torch.testing.assert_close(torch.einsum("uid,ud->ui", table, weight) + bias, kept.scores)
    assert Kept("fedncf", number=1).replay(torch.tensor([3])).shared_tables().shape == (1, ITEMS, 8)
    assert Kept("local-only", number=1).replay().shared_tables() is None


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("method", ["pfedrec", "cofedrec", "fed3cr", "fedrap"])
def test_whom_one_looks_at_together_changes_nothing(method, everybody):
    """Alone, in any order, or all at once."""
    kept = Kept(method, view="local", fraction=0.5, **({"item_rate": 1.0} if method == "fed3cr" else {}))
    whole = kept.replay(everybody=everybody)
    for clients in ([11], [20, 3, 0, 23, 7]):
        some = kept.replay(torch.tensor(clients), everybody=everybody)
        torch.testing.assert_close(some.scores(), whole.scores()[clients])
        torch.testing.assert_close(some.drift(), whole.drift()[clients])
        assert torch.equal(some.trained, whole.trained[clients])


def test_looking_changes_nothing_of_what_is_looked_at():
    kept = Kept("cofedrec", clusters=3)
    before = {name: value.clone() for name, value in kept.state.items()}
    first = kept.replay().scores()
    kept.replay(everybody=True)
    assert all(torch.equal(value, kept.state[name]) for name, value in before.items())
    assert torch.equal(kept.replay().scores(), first)


def test_companies_and_data_in_one_place_have_no_people_to_look_at():
    for name in ("popularity", "fppdm"):
        method = method_named(name)
        assert method.replay(Terms(method.config(None, {}), seed=0), cut(), {}, 1, EVERYBODY) is None
