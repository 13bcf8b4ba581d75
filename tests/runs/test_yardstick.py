"""Popularity beside every run, and what is said below it."""

import math

import numpy as np
import pytest

import confed
from confed.runs.pooling import pool
from confed.runs.yardstick import is_below, pace, verdict
from confed.testing import tiny, tiny_domains
from tests.runs.short import FEW, train, train_companies


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


def test_a_run_has_what_popularity_gets_on_the_same_items(tmp_path):
    ours = train(out=tmp_path)
    alone = confed.run(
        "popularity", tiny.interactions(), options={k: v for k, v in FEW.items() if k != "dim"}, out=tmp_path
    )
    line = dict(ours.summary["popularity"])
    error = line.pop("error")
    assert line == alone.metrics
    assert "popularity" not in alone.summary
    for kind in ("hr", "ndcg"):
        one, other = (run.ranks().per_user(kind, 10, "expected") for run in (ours, alone))
        assert error[f"{kind}@10"] == pytest.approx(100 * np.std(one - other, ddof=1) / math.sqrt(tiny.USERS))


def test_of_several_domains_each_and_their_mean(tmp_path):
    ours = train_companies(tmp_path, rounds=1)
    options = {name: value for name, value in ours.settings.protocol.model_dump().items() if name in FEW}
    alone = confed.run("popularity", tiny_domains.domains(), options={**options, "more_negatives": []}, out=tmp_path)
    line = dict(ours.summary["popularity"])
    assert line.pop("error")["hr@10"] > 0
    assert line.pop("domains") == alone.summary["domains"]
    assert line == alone.metrics


def test_over_seeds_the_yardstick_is_a_mean_too(tmp_path):
    runs = [train(out=tmp_path, seed=seed, rounds=1).summary for seed in (0, 1)]
    pooled = pool(runs)
    for metric in ("hr@10", "full_ndcg@10"):
        assert pooled["popularity"][metric] == pytest.approx(np.mean([run["popularity"][metric] for run in runs]))
    assert pooled["popularity"]["error"]["hr@10"] > 0
    is_below(pooled)
