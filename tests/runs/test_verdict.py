import pytest

from confed.runs.pooling import pool
from confed.runs.verdict import is_below, pace, verdict


def summary(hr, ndcg, *, best=10, rounds=30, error=1.0, **more):
    line = {"hr@10": 70.0, "ndcg@10": 50.0, "error": {"hr@10": error, "ndcg@10": error}}
    facts = {
        "method": "fedmf",
        "best_round": best,
        "rounds": rounds,
        "views": {"local": {"hr@10": hr, "ndcg@10": ndcg}},
    }
    return {**facts, "hr@10": hr, "ndcg@10": ndcg, "pace": {"item_rate_factor": 80.0}, "popularity": line, **more}


@pytest.mark.parametrize(
    ("hr", "ndcg", "below"),
    [
        (69.9, 49.9, True),  # both worse
        (69.0, 50.1, False),  # one worse, within the error
        (67.9, 50.1, True),  # hits worse by more than two errors
        (70.1, 47.0, False),
        (70.0, 50.0, False),
        (71.0, 51.0, False),
    ],
)
def test_below_is_both_metrics_or_hits_by_more_than_chance(hr, ndcg, below):
    assert is_below(summary(hr, ndcg)) == below
    assert bool(list(verdict(summary(hr, ndcg)))) == below


def test_runs_without_a_yardstick_are_not_judged():
    old = summary(10.0, 5.0)
    del old["popularity"]
    assert list(verdict(old)) == []


def said(**more):
    below, remedies = verdict(summary(68.8, 49.8, error=0.91, **more))
    assert below == (
        "fedmf ends below popularity: HR@10 68.80 against 70.00, NDCG@10 49.80 against 50.00 "
        "(standard errors of the difference: 0.91 and 0.91)"
    ).replace("fedmf", more.get("method", "fedmf"))
    return remedies


def test_what_to_try_depends_on_when_the_run_was_best():
    assert said(best=1) == (
        "what to try: smaller steps, as it was best in round 1 of 30 (--set item_rate_factor=8); "
        "a closed form, such as ease"
    )
    assert said(best=30) == (
        "what to try: more rounds, as it was still learning (--rounds 60); "
        "larger steps (--set item_rate_factor=240); a closed form, such as ease"
    )
    assert said(best=15) == "what to try: a closed form, such as ease"
    assert said(best=1, rounds=1, pace={}, method="mf") == "what to try: a closed form, such as ease"


def test_another_view_of_the_same_round_may_be_above():
    views = {"local": {"hr@10": 68.8, "ndcg@10": 49.8}, "global": {"hr@10": 70.5, "ndcg@10": 50.5}}
    assert said(best=15, views=views) == (
        "what to try: the global view, which is above it (--set view=global); a closed form, such as ease"
    )


def test_nothing_is_left_to_try_where_the_closed_form_itself_is_below():
    assert len(list(verdict(summary(60.0, 40.0, best=1, rounds=1, method="ease", pace={})))) == 1


def test_the_pace_of_a_method_is_what_says_most_about_it():
    assert pace({"learning_rate": 0.1, "item_rate_factor": 8.0}) == {"item_rate_factor": 8.0}
    assert pace({"learning_rate": 0.1, "item_rate": 100.0}) == {"item_rate": 100.0}
    assert pace({"learning_rate": 0.1, "item_rate_factor": None}) == {"learning_rate": 0.1}
    assert pace({"regularisation": 300.0}) == {}


def test_several_seeds_are_judged_by_their_means():
    for one, other, below in ((60.0, 90.0, False), (60.0, 70.0, True)):
        pooled = pool([summary(one, 49.0, seed=0, best=1), summary(other, 49.0, seed=1, best=3)])
        assert is_below(pooled) == below
    (line, remedies) = verdict(pooled)
    assert "HR@10 65.00 against 70.00" in line
    assert "best in round 2 of 30" in remedies
