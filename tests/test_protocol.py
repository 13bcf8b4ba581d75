import pytest

from confed.errors import ConfedError
from confed.protocol import PAPER, STRICT, Protocol, protocol_named


def test_the_two_protocols_differ_in_the_documented_switches():
    """docs/protocols.md, the table of switches."""
    ours, theirs = STRICT.model_dump(), PAPER.model_dump()
    assert {key for key in ours if ours[key] != theirs[key]} == {
        "name",
        "neg_pool",
        "dedupe",
        "split_ties",
        "pseudo_time",
        "candidates",
        "score_space",
        "rank_ties",
        "select_metric",
        "select_ties",
    }


def test_the_label_names_every_changed_switch():
    assert (STRICT.label, PAPER.label) == ("strict", "paper")
    assert PAPER.model_copy(update={"neg_pool": "untrained"}).label == "paper, neg_pool=untrained"
    assert STRICT.model_copy(update={"cutoffs": (3,)}).label == "strict"


def test_unknown_protocol_names_the_nearest():
    with pytest.raises(ConfedError, match="did you mean strict"):
        protocol_named("strct")


@pytest.mark.parametrize("metric", ["hr", "auc@10", "hr@0", "ndcg@-1"])
def test_a_selecting_metric_must_exist(metric):
    with pytest.raises(ValueError, match="not one of"):
        Protocol(select_metric=metric)


def test_cutoffs_accept_one_or_many():
    assert Protocol(cutoffs=7).cutoffs == (7,)
    assert Protocol(cutoffs="5,20").cutoffs == (5, 20)
    assert Protocol(cutoffs=(3,), select_metric="hr@4").all_cutoffs == (3, 4, 10)


def test_k_beyond_the_candidates_is_an_error():
    with pytest.raises(ConfedError, match="K = 200 is larger than the 100 sampled candidates"):
        Protocol(cutoffs=(200,)).check_cutoffs(items=1000)
    with pytest.raises(ConfedError, match=r"K = 20 is larger than the 15 items .*: lower `cutoffs`"):
        Protocol(cutoffs=(20,)).check_cutoffs(items=15)
    with pytest.raises(ConfedError, match=r"K = 10 is larger than the 8 items .*: it takes data with more items"):
        Protocol(cutoffs=(5,)).check_cutoffs(items=8)
