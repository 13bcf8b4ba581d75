"""What clients are given does not depend on who else is held in the same place."""

import numpy as np
import pytest
import torch

from confed.clients.sampling import draw_rows
from confed.data.registry import load_dataset
from confed.data.shares import Share
from confed.data.split import split
from confed.evaluation.evaluator import PARTS, Evaluator, Result
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.protocol import STRICT
from confed.random import Stream
from confed.testing import assert_close_states
from confed.testing.in_bytes import federated_in_bytes
from confed.testing.tiny import ITEMS, TINY_STRICT, USERS, cut
from tests.realdata import require

SOME = np.array([17, 2, 21, 9, 3])


def people(method="pfedrec", chunk=None, **options):
    chosen = method_named(method)
    terms = Terms(chosen.config(None, {"dim": 4, **options}), seed=0, dtype="float64", chunk=chunk)
    return chosen.gateway(terms, Share.of(cut()))


@pytest.mark.parametrize("chunk", [None, 1, 5, 100])
def test_chunks_hold_every_participant_once_longest_first(chunk):
    some = people(chunk=chunk)
    chunks = list(some.chunks(np.arange(USERS)))
    together = np.concatenate(chunks)
    assert sorted(together.tolist()) == list(range(USERS))
    lengths = some.data.positives.lengths[together]
    assert (np.diff(lengths) <= 0).all()
    if chunk:
        assert all(len(c) == chunk for c in chunks[:-1])


def test_chunks_stay_small_where_every_client_trains_a_network():
    some = people("fed3cr", dim=32, layers=4, variant="C1")
    values = some._net_values
    assert values == 698_240
    assert max(len(chunk) for chunk in some.chunks(np.arange(USERS))) <= 2**22 // values


@pytest.mark.parametrize("virtual", [0.0, 0.5])
def test_rows_and_their_order_follow_the_id(virtual):
    """Of the same clients, drawn among all and from data that holds only them."""
    data, few = cut().training, cut().training.take(SOME)
    assert few.ids.tolist() == SOME.tolist()
    among_all, alone = (
        draw_rows(of, clients, 4, Stream.of(0, "n"), torch.float64, virtual=virtual)
        for of, clients in ((data, SOME), (few, np.arange(len(SOME))))
    )
    assert among_all.ids.tolist() == alone.ids.tolist()
    assert among_all.clients.tolist() == SOME[alone.clients].tolist()
    for name in ("local", "labels", "touched"):
        assert torch.equal(getattr(among_all, name), getattr(alone, name))
    shuffle = Stream.of(0, "shuffle")
    assert among_all.order(1, shuffle).tolist() == alone.order(1, shuffle).tolist()


def test_an_id_may_be_any_64_bit_integer():
    data = cut().training
    large = type(data)(data.items, data.positives, data.excluded, np.arange(USERS) + 2**62)
    rows = draw_rows(large, SOME, 4, Stream.of(0, "n"), torch.float64)
    assert rows.ids.min() > 2**62
    assert not torch.equal(rows.touched, draw_rows(data, SOME, 4, Stream.of(0, "n"), torch.float64).touched)


def test_an_evaluator_of_some_users_finds_what_one_of_all_finds():
    logits = torch.randn(USERS, ITEMS, generator=torch.Generator().manual_seed(0))
    protocol = TINY_STRICT.model_copy(update={"more_negatives": (20,)})
    whole = Evaluator(cut(), protocol, 3)
    card = whole.scorecard()
    card.add(torch.arange(USERS), logits)
    tallies = []
    for places in (SOME, np.setdiff1d(np.arange(USERS), SOME)):
        part = Evaluator(cut().take(places), protocol, 3, rankings=whole.rankings)
        some = part.scorecard()
        some.add(torch.arange(len(places)), logits[places])
        tallies.append(some.tally())
    together = Result.of(tallies[0] + tallies[1], whole.rankings, protocol)
    for part in PARTS:
        assert together.metrics(part) == card.result().metrics(part)


def test_rankings_are_those_agreed_on_whoever_is_held():
    """A part of the users may all have items left that another one has not."""
    pool = ITEMS - cut().seen.lengths
    most = int(pool.min()) + 1
    protocol = TINY_STRICT.model_copy(update={"more_negatives": (most,)})
    some = cut().take(np.flatnonzero(pool >= most))
    assert f"neg{most}_" in Evaluator(some, protocol, 0).rankings
    agreed = Evaluator(cut(), protocol, 0).rankings
    assert Evaluator(some, protocol, 0, rankings=agreed).rankings == agreed == ("", "full_")


@pytest.mark.parametrize("method", ["pfedrec", "cofedrec", "fed3cr", "fedrap", "fedncf"])
def test_two_halves_of_ml_100k_trained_apart_and_merged_equal_the_whole(method):
    data = split(load_dataset(require("ml-100k")), STRICT, 0)
    chosen = method_named(method)
    terms = Terms(chosen.config("ml-100k", {}), seed=0)
    together = chosen.trainer(terms, data, {})
    order = torch.randperm(data.users, generator=torch.Generator().manual_seed(1))
    apart = federated_in_bytes(chosen, terms, data, None, [order[:300], order[300:]])
    for number in (1, 2):
        assert together.round(number).notes == apart.round(number).notes
    assert_close_states(together.state(), apart.state(), 1e-5)
