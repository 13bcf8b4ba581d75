import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from confed.clients.gateway import People
from confed.clients.sampling import draw_rows
from confed.errors import ConfedError
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.random import Stream
from confed.testing import PeopleConformance, assert_equal_states, tiny
from confed.testing.conformance import SEED
from confed.testing.states import whole_state

SMALL = {"dim": 8, "init_deviation": 0.5, "decay": 0.5, "negative_decay": 0.2}


def plainly(config, people: People, before, number):
    """The published loop, one client and one pair after another; what the state should be after the round."""
    negatives = Stream.of(SEED, "negatives", number)
    rows = draw_rows(people.data, np.arange(people.data.users), 1, negatives, torch.float64, draw="pairs")
    coins = Stream.of(SEED, "shuffle", number).child("told")
    expected = {name: value.clone() for name, value in before.items()}
    items, biases = before["server.items"], before["server.item_bias"][:, 0]
    rate, weight = config.learning_rate, config.decay * config.learning_rate
    for place, client in enumerate(rows.clients.tolist()):
        vector = before["client.user"][client].clone()
        touched = rows.touched[place]
        for pair in range(int(rows.lengths[place]) // 2):
            i, j = (int(touched[rows.local[place, 2 * pair + side]]) for side in (0, 1))
            delta = 1 / (1 + math.exp(float(vector @ (items[i] - items[j]) + biases[i] - biases[j])))
            own = vector.clone()
            vector = vector + rate * (delta * (items[i] - items[j]) - weight * own)
            expected["server.items"][j] += rate * (-delta * own - config.negative_decay * rate * items[j])
            expected["server.item_bias"][j, 0] -= rate * delta
            if float(coins.uniform(rows.ids[place], pair)[0]) < config.disclosed:
                expected["server.items"][i] += rate * (delta * own - weight * items[i])
                expected["server.item_bias"][i, 0] += rate * delta
        expected["client.user"][client] = vector
    return expected


class FedeRankConformance(PeopleConformance):
    method = "federank"

    def test_a_round_equals_the_published_loop(self) -> None:
        trainer = self.federation(chunk=7)
        before = {name: value.clone() for name, value in whole_state(trainer).items()}
        trainer.round(1)
        expected = plainly(self.terms().config, self.people(trainer), before, 1)
        assert expected.keys() == before.keys()
        assert_equal_states(whole_state(trainer), expected, tolerance=1e-9)


class TestAll(FedeRankConformance):
    options = SMALL


class TestHalf(FedeRankConformance):
    options = {**SMALL, "disclosed": 0.5, "fraction": 1.0}


def trained(**options):
    method = method_named("federank")
    trainer = method.trainer(Terms(method.config(None, {**SMALL, **options}), seed=1, dtype="float64"), tiny.cut(), {})
    people, download = trainer.federation.site.gateway, trainer.server.download()
    return people.train_chunk(1, download, np.arange(tiny.USERS)), download


@pytest.mark.parametrize(("disclosed", "moved"), [(0.0, False), (1.0, True)])
def test_positives_move_only_where_they_are_disclosed(disclosed, moved):
    """And negatives always do."""
    cohort, download = trained(disclosed=disclosed)
    before = download.tables["item_bias"][0]
    for place in range(tiny.USERS):
        positives = set(cohort.rows.positives[place].tolist())
        for row, item in enumerate(cohort.rows.touched[place].tolist()):
            if item < tiny.ITEMS:
                changed = not torch.equal(cohort.tables["item_bias"][place, row], before[item])
                assert changed == (item not in positives or moved)


def test_a_pair_is_any_positive_and_an_item_outside():
    data = tiny.cut().training
    rows = draw_rows(data, np.arange(tiny.USERS), 1, Stream.of(0, "n"), torch.float64, draw="pairs")
    items = rows.touched.gather(1, rows.local)
    repeated = False
    for place, client in enumerate(rows.clients.tolist()):
        own, drawn = data.positives[client].tolist(), items[place, : rows.lengths[place]].tolist()
        assert len(drawn) == 2 * len(own)
        assert set(drawn[::2]) <= set(own) and not set(drawn[1::2]) & set(own)
        repeated |= len(set(drawn[::2])) < len(own)
    assert repeated


def test_a_visit_has_one_pace_for_all_rounds():
    method = method_named("federank")
    pieces = method.pieces(method.config(None, SMALL), tiny.ITEMS)
    pieces.check("federank")
    with pytest.raises(ConfedError, match="federank: a visit has one pace for all rounds"):
        replace(pieces, procedure=replace(pieces.procedure, round_decay=0.9)).check("federank")
