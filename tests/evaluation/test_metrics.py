import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.evaluation.metrics import METRICS, Ranks


def by_enumeration(metric: str, above: int, equal: int, k: int) -> float:
    """The definition: average the gain over every place the held-out item may take among its ties."""
    gains = {
        "hr": lambda r: 1.0,
        "recall": lambda r: 1.0,
        "precision": lambda r: 1.0 / k,
        "ndcg": lambda r: 1.0 / math.log2(1 + r),
        "mrr": lambda r: 1.0 / r,
    }
    ranks = range(above + 1, above + equal + 2)
    return sum(gains[metric](r) if r <= k else 0.0 for r in ranks) / len(ranks)


@given(st.sampled_from(METRICS), st.integers(0, 30), st.integers(0, 30), st.integers(1, 25))
def test_expected_ties_equal_enumeration(metric, above, equal, k):
    ranks = Ranks(np.array([above]), np.array([equal]))
    assert ranks.per_user(metric, k, "expected")[0] == pytest.approx(by_enumeration(metric, above, equal, k))


@given(st.sampled_from(METRICS), st.integers(0, 30), st.integers(0, 30), st.integers(1, 25))
def test_lost_ties_take_the_last_place(metric, above, equal, k):
    ranks = Ranks(np.array([above]), np.array([equal]))
    assert ranks.per_user(metric, k, "lost")[0] == pytest.approx(by_enumeration(metric, above + equal, 0, k))


def test_hand_computed_case():
    """Ranks 1, 3 and 11 at K = 10: HR 2/3, NDCG (1 + 1/2)/3, MRR (1 + 1/3)/3."""
    report = Ranks(np.array([0, 2, 10]), np.zeros(3, dtype=np.int64)).report([10], "lost")
    assert report["hr@10"] == pytest.approx(200 / 3)
    assert report["ndcg@10"] == pytest.approx(50)
    assert report["mrr@10"] == pytest.approx(400 / 9)
    assert report["precision@10"] == pytest.approx(20 / 3)


def test_a_user_that_was_not_ranked_scores_zero():
    report = Ranks(np.array([-1]), np.array([0])).report([10], "expected")
    assert set(report.values()) == {0.0}


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1),
    st.sampled_from(["lost", "expected"]),
)
def test_ndcg_lies_between_its_bounds(pairs, ties):
    """NDCG@K is in [HR@K / log2(K + 1), HR@K], and metrics grow with K (decisions.md "Checks")."""
    above, equal = (np.array(column) for column in zip(*pairs, strict=True))
    report = Ranks(above, equal).report([5, 10], ties)
    assert report["hr@10"] / math.log2(11) - 1e-9 <= report["ndcg@10"] <= report["hr@10"] + 1e-9
    assert report["hr@10"] >= report["hr@5"] - 1e-9


def test_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="auc"):
        Ranks(np.array([0]), np.array([0])).per_user("auc", 10, "lost")
