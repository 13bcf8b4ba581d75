"""Counts of what stands above a held-out item, against sets and comparisons one would write down first."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.evaluation import counting
from confed.evaluation.counting import bounds, count_all, count_some, ranked
from confed.protocol import PAPER, STRICT
from confed.ragged import Ragged


def counted(scores, held_out, known, protocol=STRICT):
    """(above, equal), each (2, users), of all items; and what `count_all` says of them."""
    logits = torch.as_tensor(scores)
    values = ranked(logits, protocol)
    users, own = np.arange(len(values)), Ragged.of(known)
    above, equal = (np.full((2, len(users)), -1) for _ in range(2))
    low, high = bounds(np.take_along_axis(values, held_out, axis=1), protocol)
    finite = count_all(values, low, high, users, held_out, own.offsets, own.values, above, equal)
    return above, equal, finite


@given(st.data())
def test_all_items_but_those_one_is_known_to_have(data):
    """With ties, with a held-out item that is also a training item, and with both held-out items the same."""
    users, items = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 40))
    kind = data.draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    scores = rng.integers(-3, 3, (users, items)).astype(kind)
    held_out = rng.integers(0, items, (users, 2))
    known = [sorted({*rng.integers(0, items, rng.integers(0, 6)).tolist()}) for _ in range(users)]
    above, equal, finite = counted(scores, held_out, known)
    assert finite
    for u, (first, second) in enumerate(held_out):
        for part, (target, hidden) in enumerate([(first, {first}), (second, {first, second})]):
            others = scores[u][[item for item in range(items) if item not in hidden | set(known[u])]]
            assert above[part, u] == (others > scores[u, target]).sum()
            assert equal[part, u] == (others == scores[u, target]).sum()


def test_stretches_are_added_up():
    """Written down whole, float32 could not count so far."""
    scores = np.random.default_rng(0).normal(size=(2, (1 << 20) + 5)).astype(np.float32)
    held_out = np.array([[3, 1 << 20], [7, 8]])
    above, _, _ = counted(scores, held_out, [[], []])
    expected = [(scores[u] > scores[u, held_out[u, part]]).sum() for part in (0, 1) for u in (0, 1)]
    seen_first = [int(scores[u, held_out[u, 0]] > scores[u, held_out[u, 1]]) for u in (0, 1)]
    assert above.reshape(-1).tolist() == [*expected[:2], *(np.array(expected[2:]) - seen_first)]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen(kind, value):
    scores = np.zeros((3, 50), dtype=kind)
    held_out = np.zeros((3, 2), dtype=np.int64)
    assert counted(scores, held_out, [[]] * 3)[2]
    scores[1, 17] = value
    assert not counted(scores, held_out, [[]] * 3)[2]


def test_some_items_for_some_clients():
    scores = np.array([[0.0, 1.0, 1.0, 2.0], [3.0, 1.0, 0.0, 1.0]])
    candidates = np.array([[9, 9], [2, 3], [9, 9], [0, 1]], dtype=np.int32)  # of everybody
    above, equal = np.full(4, -1), np.full(4, -1)
    target = np.array([1.0, 1.0])
    count_some(scores, target, target, np.array([1, 3]), candidates, above, equal)
    assert above.tolist() == [-1, 1, -1, 1] and equal.tolist() == [-1, 1, -1, 1]


def probability(logits):
    """As `counting` defines it, for arrays."""
    return np.float32(1) / (np.float32(1) + np.exp(-logits.astype(np.float64)).astype(np.float32))


SATURATED = [12.0, 15.0, 16.6, 16.64, 17.0, 30.0, 900.0, -40.0, -87.0]
LOGITS = np.float32([0.0, 1e-30, -1e-30, 0.3, -0.3, 5.0, -5.0, *SATURATED])


@given(st.lists(st.floats(-200, 200, width=32), min_size=1))
def test_ties_of_probabilities_end_where_the_probability_changes(more):
    logits = np.concatenate([LOGITS, np.float32(more)])[:, None]
    with np.errstate(over="ignore"):
        low, high = bounds(logits, PAPER)
        own = probability(logits)
        for edge, beyond in ((low, np.float32(-np.inf)), (high, np.float32(np.inf))):
            assert ((probability(edge) == own) | np.isinf(edge)).all()
            next_one = np.nextafter(edge, beyond)
            assert ((probability(next_one) != own) | np.isinf(edge)).all()
    assert (low <= logits).all() and (logits <= high).all()


def test_probabilities_tie_as_those_of_published_code():
    """torch's own float32 probabilities round a last bit otherwise now and then; what saturates does so alike."""
    scores = torch.linspace(-30, 30, 4001).repeat(40, 1)
    scores += 1e-3 * torch.randn(scores.shape, generator=torch.Generator().manual_seed(0))
    held_out = np.stack([np.arange(40) * 100, np.arange(40) * 100 + 50], axis=1)
    above, equal, _ = counted(scores, held_out, [[]] * 40, PAPER)
    published = torch.sigmoid(scores)
    for part in (0, 1):
        target = published.gather(1, torch.from_numpy(held_out[:, part : part + 1]))
        others = published.scatter(1, torch.from_numpy(held_out[:, : part + 1]), -1.0)
        assert np.abs(above[part] - (others > target).sum(1).numpy()).max() <= 1
        assert np.abs(equal[part] - (others == target).sum(1).numpy()).max() <= 1
    assert equal.max() > 500, "nearly a quarter of them has the probability 1"


def test_float64_logits_are_ranked_as_float32_where_probabilities_are():
    logits = torch.tensor([[1.0, 1.0 + 1e-12, 2.0]], dtype=torch.float64)
    held_out = np.array([[0, 2]])
    assert counted(logits, held_out, [[]])[1].tolist() == [[0], [0]]
    assert counted(logits, held_out, [[]])[0].tolist() == [[2], [0]]
    assert counted(logits, held_out, [[]], PAPER)[1].tolist() == [[1], [0]]
    assert counting.ranked(logits, PAPER).dtype == np.float32
