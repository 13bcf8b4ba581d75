"""How many items stand above a held-out one, and how many beside it: counted in one pass, while scores are in cache.

Nothing of the size of (users, items) is written. An item is above if its score is larger than `high`, beside it if it
is neither larger than that nor smaller than `low`. Where logits are ranked both are the held-out item's own. Where
probabilities in float32 are ranked, as in published code, many logits have the same one: `low` and `high` are the least
and the largest of them, so that no other item's probability has to be taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from confed.compiled import compiled
from confed.protocol import Protocol

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Items = NDArray[np.int32]

_STRETCH = 1 << 20
"""Items that are counted in float32, which has all whole numbers up to 16 times that."""
_FAR = np.float32(1000.0)
"""From here to infinity all logits have the same probability."""


def ranked(logits: Tensor, protocol: Protocol) -> Floats:
    """The scores of which items are counted."""
    scores = logits.float() if protocol.score_space == "probability" else logits
    return np.ascontiguousarray(scores.numpy())


def bounds(of: Floats, protocol: Protocol) -> tuple[Floats, Floats]:
    """`low` and `high` for the scores of held-out items."""
    if protocol.score_space != "probability":
        return of, of
    low, high = np.empty_like(of), np.empty_like(of)
    _tied(of, low, high)
    return low, high


@compiled
def count_some(
    scores: Floats, low: Floats, high: Floats, cases: Ints, candidates: Items, above: Ints, equal: Ints
) -> None:
    """Among the candidates (all cases, n) of `cases`, whose scores these are."""
    for u in range(len(cases)):
        larger, least = 0, 0
        for item in candidates[cases[u]]:
            larger += scores[u, item] > high[u]
            least += scores[u, item] >= low[u]
        above[cases[u]] = larger
        equal[cases[u]] = least - larger


@compiled
def count_all(
    scores: Floats,
    low: Floats,
    high: Floats,
    cases: Ints,
    held_out: Ints,
    offsets: Ints,
    known: Ints,
    above: Ints,
    equal: Ints,
) -> bool:
    """Among all items but those that are `known` of a case (D-4), and the first of the two `held_out`
    (all cases, 2), and for the second also that. `above` and `equal` are (2, all cases). Whether all scores are finite.
    """
    finite = True
    larger, least = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    for u in range(len(cases)):
        case = cases[u]
        mine = known[offsets[case] : offsets[case + 1]]
        first, second = held_out[case, 0], held_out[case, 1]
        finite = _count(scores[u], low[u], high[u], larger, least) and finite
        for item in mine:
            _leave_out(scores[u, item], low[u], high[u], 0, larger, least)
        if not _is_in(mine, first):
            _leave_out(scores[u, first], low[u], high[u], 0, larger, least)
        if not _is_in(mine, second) and first != second:
            _leave_out(scores[u, second], low[u], high[u], 1, larger, least)
        above[:, case] = larger
        equal[:, case] = least - larger
    return finite


@compiled
def _count(scores: Floats, low: Floats, high: Floats, larger: Ints, least: Ints) -> bool:
    """Beside either held-out item; whether all scores are finite."""
    finite = True
    larger[:], least[:] = 0, 0
    for start in range(0, len(scores), _STRETCH):
        finite = _count_stretch(scores[start : start + _STRETCH], low, high, larger, least) and finite
    return finite


@compiled
def _count_stretch(scores: Floats, low: Floats, high: Floats, larger: Ints, least: Ints) -> bool:
    """Counters are of the type of scores, whose whole numbers are exact so far: they fill registers as scores do."""
    one, none = scores.dtype.type(1), scores.dtype.type(0)
    larger_0 = least_0 = larger_1 = least_1 = nothing = none
    low_0, low_1, high_0, high_1 = low[0], low[1], high[0], high[1]
    for i in range(len(scores)):
        x = scores[i]
        larger_0 += one if x > high_0 else none
        least_0 += one if x >= low_0 else none
        larger_1 += one if x > high_1 else none
        least_1 += one if x >= low_1 else none
        nothing += none * x  # not a number, if x is not finite
    larger[0], larger[1] = larger[0] + np.int64(larger_0), larger[1] + np.int64(larger_1)
    least[0], least[1] = least[0] + np.int64(least_0), least[1] + np.int64(least_1)
    return bool(nothing == none)


@compiled
def _leave_out(score: float, low: Floats, high: Floats, first: int, larger: Ints, least: Ints) -> None:
    """An item that was counted: from the `first` held-out item on."""
    for part in range(first, 2):
        larger[part] -= score > high[part]
        least[part] -= score >= low[part]


@compiled
def _is_in(some: Ints, item: int) -> bool:
    found = 0
    for one in some:
        found += one == item
    return found > 0


@compiled
def _tied(logits: Floats, low: Floats, high: Floats) -> None:
    """For every logit in float32 the least and the largest one with the same probability."""
    for u in range(logits.shape[0]):
        for part in range(logits.shape[1]):
            low[u, part] = _last(logits[u, part], np.float32(-1.0))
            high[u, part] = _last(logits[u, part], np.float32(1.0))


@compiled
def _last(logit: np.float32, direction: np.float32) -> np.float32:
    """The last one in a direction that has the same probability: a step that has another, halved until none is left."""
    probability = _probability(logit)
    near, step = logit, np.float32(max(abs(logit), np.float32(1.0)) * np.float32(2.0**-20))
    far = near + direction * step
    while _probability(far) == probability:
        if abs(far) > _FAR:
            return direction * np.float32(np.inf)
        near, step = far, step * np.float32(4.0)
        far = near + direction * step
    while True:
        middle = near + np.float32(0.5) * (far - near)
        if middle in (near, far):
            return near
        if _probability(middle) == probability:
            near = middle
        else:
            far = middle


@compiled
def _probability(logit: np.float32) -> np.float32:
    """1 / (1 + exp(−x)), each step rounded to float32: it never falls where x rises."""
    return np.float32(1.0) / (np.float32(1.0) + np.float32(np.exp(-np.float64(logit))))
