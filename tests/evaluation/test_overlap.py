import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.evaluation.overlap import rank_biased_overlap, shared_prefixes


def by_definition(one, other, p):
    depth = len(one)
    shared = [len(set(one[:d]) & set(other[:d])) for d in range(1, depth + 1)]
    total = sum(x / d * p**d for d, x in enumerate(shared, start=1))
    return shared[-1] / depth * p**depth + (1 - p) / p * total


def test_by_hand():
    """a b c against b a d, p = 1/2: overlaps 0, 2, 2; 2/3 · 1/8 + 1 · (0 + 1 · 1/4 + 2/3 · 1/8)."""
    one, other = torch.tensor([[0, 1, 2]]), torch.tensor([[1, 0, 3]])
    assert shared_prefixes(one, other).tolist() == [[0, 2, 2]]
    assert rank_biased_overlap(one, other, p=0.5).item() == pytest.approx(2 / 24 + 1 / 4 + 2 / 24)


def test_the_same_ranking_is_one_and_disjoint_ones_are_zero():
    ranking = torch.arange(50)[None]
    assert rank_biased_overlap(ranking, ranking).item() == pytest.approx(1.0)
    assert rank_biased_overlap(ranking, ranking + 50).item() == 0.0


rankings = st.permutations(range(12)).map(lambda order: order[:7])


@given(st.lists(st.tuples(rankings, rankings), min_size=1, max_size=4), st.floats(0.05, 0.99))
def test_equals_the_definition(pairs, p):
    one, other = (torch.tensor(side) for side in zip(*pairs, strict=True))
    expected = [by_definition(a, b, p) for a, b in pairs]
    assert rank_biased_overlap(one, other, p).tolist() == pytest.approx(expected)
