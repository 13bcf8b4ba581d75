import numpy as np
import pytest

from confed.errors import ConfedError
from confed.evaluation.candidates import draw_candidates, most_candidates
from confed.testing.tiny import TINY_PAPER, TINY_STRICT, cut


@pytest.mark.parametrize("protocol", [TINY_STRICT, TINY_PAPER])
def test_candidates_are_distinct_and_were_never_touched(protocol):
    some = cut(protocol)
    for drawn in draw_candidates(some, protocol, 0):
        assert drawn.shape == (some.users, 15)
        for user, items in enumerate(drawn):
            assert len(set(items)) == 15
            assert not set(items) & set(some.seen[user])
            assert items.min() >= 0 and items.max() < some.items


def test_halves_do_not_overlap_and_independent_streams_may():
    halves = draw_candidates(cut(TINY_PAPER), TINY_PAPER, 0)
    assert not any(set(a) & set(b) for a, b in zip(*halves, strict=True))
    independent = draw_candidates(cut(), TINY_STRICT, 0)
    assert any(set(a) & set(b) for a, b in zip(*independent, strict=True))


def test_shared_candidates_are_the_same_set():
    protocol = TINY_PAPER.model_copy(update={"shared_candidates": True})
    validation, test = draw_candidates(cut(TINY_PAPER), protocol, 0)
    assert np.array_equal(validation, test)


def test_candidates_depend_on_the_seed_alone():
    first, again, other = (draw_candidates(cut(), TINY_STRICT, seed)[1] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_too_few_items_for_the_candidates():
    with pytest.raises(ConfedError, match=r"never touched \d+ of 60 items, but 99 .*options=..negatives"):
        draw_candidates(cut(), TINY_STRICT.model_copy(update={"negatives": 99}), 0)


@pytest.mark.parametrize("protocol", [TINY_STRICT, TINY_PAPER])
@pytest.mark.parametrize("shared", [False, True])
def test_the_most_is_what_can_be_drawn(protocol, shared):
    protocol = protocol.model_copy(update={"shared_candidates": shared})
    some = cut(protocol)
    most = most_candidates(some, protocol)
    assert draw_candidates(some, protocol, 0, most)[0].shape == (some.users, most)
    with pytest.raises(ConfedError, match="never touched"):
        draw_candidates(some, protocol, 0, most + 1)
