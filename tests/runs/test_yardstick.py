"""Popularity beside every run."""

import math

import numpy as np
import pytest

import confed
from confed.runs.pooling import pool
from confed.testing import tiny, tiny_domains
from tests.runs.short import FEW, train, train_companies


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


def test_of_large_data_it_is_said_what_is_left_to_do(tmp_path, monkeypatch):
    for pairs, told in (
        (10**9, [None, None]),
        (0, [None, None, "the last round is done, popularity ranks the same items"]),
    ):
        monkeypatch.setattr("confed.runs.execute._SECONDS", pairs)
        heard = []
        train(out=tmp_path, rounds=2, listener=lambda line, settings, heard=heard: heard.append(line.get("waiting")))
        assert heard == told
