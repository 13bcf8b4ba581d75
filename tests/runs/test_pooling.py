import numpy as np
import pytest

from confed.runs.pooling import pool


def test_pool_averages_over_seeds():
    runs = [train_summary(seed, hr) for seed, hr in ((0, 40.0), (1, 44.0))]
    pooled = pool(runs)
    assert pooled["hr@10"] == pooled["mean"]["hr@10"] == 42.0
    assert pooled["std"]["hr@10"] == pytest.approx(np.std([40, 44], ddof=1))
    assert pooled["seeds"] == [0, 1] and len(pooled["runs"]) == 2
    assert pool(runs[:1]) == runs[0]


def train_summary(seed, hr):
    facts = {"method": "m", "dataset": "d", "protocol": "p", "view": "local", "published": [], "rounds": 1}
    costs = {"participations": 1, "upload_bytes": 0, "download_bytes": 0, "seconds": 1.0}
    return {**facts, **costs, "seconds_per_round": 1.0, "peak_rss_mb": 1.0, "seed": seed, "hr@10": hr}


def test_shares_are_pooled_too():
    of = [{"seed": seed, "untrained": {"a": share, "b": 0.0}} for seed, share in ((0, 0.1), (1, 0.3))]
    assert pool(of)["untrained"] == pytest.approx({"a": 0.2, "b": 0.0})
    assert pool([{"seed": 0, "untrained": 0.1}, {"seed": 1, "untrained": 0.2}])["untrained"] == pytest.approx(0.15)
