"""Runs on several domains, from data to recommendations."""

import polars as pl
import pytest

import confed
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError

TINY = "synthetic:domains=2,users=40,items=60,interactions_per_user=10"
FEW = {"negatives": 15, "cutoffs": [5, 10], "more_negatives": 20}
SMALL = {"dim": 6, "batch_size": 64, "local_epochs": 1, "train_negatives": 4, "learning_rate": 0.01, **FEW}


def run(tmp_path, method="fppdm++", data=TINY, options=SMALL, **settings):
    return confed.run(method, data, rounds=3, options=options, out=tmp_path, **settings)


def test_a_summary_has_every_domain(tmp_path):
    summary = run(tmp_path).summary
    assert summary["protocol"].startswith("warm")
    assert summary["view"] == "local"
    assert set(summary["domains"]) == {"a", "b"}
    for metrics in summary["domains"].values():
        assert {"hr@5", "ndcg@5", "hr@10", "ndcg@10", "neg20_hr@10", "full_hr@10"} <= set(metrics)
    mean = sum(metrics["hr@10"] for metrics in summary["domains"].values()) / 2
    assert summary["hr@10"] == pytest.approx(mean)
    assert summary["users"] == 40
    assert set(summary["upload_parts"]) == {"a", "b"}
    assert summary["upload_bytes"] > 0


def test_a_broken_run_goes_on_as_if_nothing_had_been(tmp_path):
    whole = run(tmp_path / "whole").summary
    part = confed.run("fppdm++", TINY, rounds=2, options=SMALL, folder=tmp_path / "part")
    resumed = confed.resume(part.folder.path, rounds=3).summary
    for name in ("hr@10", "domains", "views", "best_round", "upload_bytes"):
        assert resumed[name] == whole[name]


def test_recommendations_are_asked_of_one_domain(tmp_path):
    found = run(tmp_path)
    opened = confed.Run.open(found.folder.path)
    items = opened.recommend("3", k=4, domain="b")
    assert len(items) == 4
    assert [one.item for one in items] == [one.item for one in found.recommend("3", k=4, domain="b")]
    data = synthetic_domains(domains=2, users=40, items=60, interactions_per_user=10)["b"].frame
    has = set(data.filter(pl.col("user") == "3")["item"])
    assert not has & {one.item for one in items}
    with pytest.raises(ConfedError, match=r"several domains \(a, b\)"):
        opened.recommend("3")
    with pytest.raises(ConfedError, match="unknown domain 'd'"):
        opened.recommend("3", domain="d")


def test_why_a_user_is_not_known_to_a_domain(tmp_path):
    data = synthetic_domains(domains=2, users=40, items=60, interactions_per_user=10, overlap=0.5)
    only_a = sorted(set(data["a"].users) - set(data["b"].users))[0]
    everybody = run(tmp_path / "all", data=data, options=SMALL | {"population": "all"})
    with pytest.raises(ConfedError, match=f"user '{only_a}' is known to a only: ask for domain=.a"):
        everybody.recommend(only_a, domain="b")
    shared = run(tmp_path / "shared", data=data)
    with pytest.raises(ConfedError, match="serves only those it trained on: who is new, or was left out"):
        shared.recommend(only_a, domain="a")
    with pytest.raises(ConfedError, match="user 'nobody' is nobody whom this run knows"):
        shared.recommend("nobody", domain="a")


def test_noise_is_in_the_summary(tmp_path):
    noise = run(tmp_path, options=SMALL | {"upload_clip": 2.0, "upload_noise": 0.5}).summary["noise"]
    assert set(noise) == {"a", "b"}
    assert all(note["noise_deviation"] == 1.0 and note["clip"] == 2.0 for note in noise.values())


def test_ranks_of_every_domain_are_kept(tmp_path):
    found = run(tmp_path)
    for name in found.domains:
        per_user = found.ranks("local", name).per_user("hr", 10, "expected")
        assert 100 * per_user.mean() == pytest.approx(found.summary["domains"][name]["hr@10"])


def test_data_in_memory_is_kept_with_the_run(tmp_path):
    frames = {
        name: part.frame
        for name, part in synthetic_domains(domains=2, users=40, items=60, interactions_per_user=10).parts.items()
    }
    found = run(tmp_path, data=frames)
    assert confed.Run.open(found.folder.path).recommend("3", k=2, domain="a")


def test_cold_users(tmp_path):
    options = SMALL | {"negatives": 20, "select_metric": "mrr@21"}
    options.pop("more_negatives")
    data = "synthetic:domains=2,users=100,items=60,interactions_per_user=10"
    summary = run(tmp_path, data=data, options=options, protocol="cold", all_views=True).summary
    assert set(summary["views"]) == {"local", "global"}
    assert all("mrr@21" in metrics for metrics in summary["domains"].values())


def test_each_domain_by_itself(tmp_path):
    summary = confed.run("popularity", TINY, options=FEW, out=tmp_path).summary
    assert set(summary["domains"]) == {"a", "b"}
    assert summary["upload_bytes"] == 0


@pytest.mark.parametrize(
    ("method", "data", "protocol", "message"),
    [
        ("pfedrec", TINY, None, "clients of pfedrec are people"),
        ("fppdm", "synthetic:users=40,items=60", None, "fppdm is for several domains"),
        ("fppdm", TINY, "strict", "evaluated under protocol=.warm. or cold, not strict"),
        ("pfedrec", "synthetic:users=40,items=60", "warm", "is one domain"),
    ],
)
def test_method_protocol_and_data_must_fit(tmp_path, method, data, protocol, message):
    with pytest.raises(ConfedError, match=message):
        confed.run(method, data, protocol=protocol, rounds=1, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_population_is_of_several_domains_only(tmp_path):
    with pytest.raises(ConfedError, match="population"):
        confed.run("pfedrec", "synthetic:users=40,items=300", rounds=1, options={"population": "all"}, out=tmp_path)


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("cold", {"population": "shared"}),
        ("cold", {"more_negatives": 30}),
        ("cold", {"neg_pool": "unseen"}),
        ("warm", {"held_out": "cold users"}),
    ],
)
def test_switches_that_would_do_nothing_are_refused(tmp_path, protocol, options):
    data = "synthetic:domains=2,users=100,items=60,interactions_per_user=10"
    with pytest.raises(ConfedError, match=r"does nothing|belongs to the protocol"):
        confed.run("fppdm", data, protocol=protocol, rounds=1, options=options, out=tmp_path)


def test_one_domain_has_no_new_users(tmp_path):
    with pytest.raises(ConfedError, match="belongs to the protocol"):
        confed.run(
            "pfedrec", "synthetic:users=40,items=300", rounds=1, options={"held_out": "cold users"}, out=tmp_path
        )


def test_a_domain_may_be_called_server(tmp_path):
    parts = synthetic_domains(domains=2, users=40, items=60, interactions_per_user=10).parts
    found = run(tmp_path, data={"server": parts["a"].frame, "client": parts["b"].frame})
    again = confed.resume(found.folder.path, rounds=4)
    assert set(again.summary["domains"]) == {"server", "client"}


def test_users_who_were_left_out_are_counted(tmp_path):
    data = "synthetic:domains=2,users=40,items=60,interactions_per_user=10,overlap=0.5"
    left_out = run(tmp_path, data=data).summary["left_out"]
    assert left_out == 20
    everybody = run(tmp_path, data=data, options={**SMALL, "population": "all"}).summary
    assert everybody["left_out"] == 0
    assert everybody["users"] == 40


def test_the_summary_says_what_no_method_could_know(tmp_path):
    """Everybody's last item in domain a is his own: nobody trains on it."""
    parts = synthetic_domains(domains=2, users=40, items=60, interactions_per_user=10).parts
    frames = {name: part.frame for name, part in parts.items()}
    own = frames["a"].group_by("user").agg(pl.col("timestamp").max() + 1)
    own = own.with_columns(item="own " + pl.col("user"), rating=pl.lit(5.0))
    columns = frames["a"].columns
    frames["a"] = pl.concat([frames["a"], own.select(columns).cast(dict(frames["a"].schema))])
    found = run(tmp_path, data=frames).summary["untrained"]
    assert found["a"] == 1.0 and found["b"] < 0.3


def test_seeds_are_pooled_domain_by_domain(tmp_path):
    pooled = confed.compare(["fppdm"], TINY, seeds=2, rounds=1, options=SMALL, out=tmp_path)[0]
    values = [one["domains"]["a"]["hr@10"] for one in pooled["runs"]]
    assert pooled["mean"]["domains"]["a"]["hr@10"] == pytest.approx(sum(values) / 2)


@pytest.mark.parametrize(
    ("method", "draws"),
    [
        ("fppdm", 10),
        ("fedgnn-silo", 1),
        ("lightgcn", 1),
        ("neumf", 4),
        ("pmlam", 10),
        ("etl-f", 0),
        ("etl", 0),
        ("popularity", 0),
    ],
)
def test_a_user_with_all_items_matters_to_methods_that_draw_others(method, draws, tmp_path):
    data = synthetic_domains(domains=2, users=60, items=60)
    frames = {name: part.frame.select("user", "item") for name, part in data.parts.items()}
    items = frames["a"]["item"].unique(maintain_order=True)
    frames["a"] = pl.concat([frames["a"], pl.DataFrame({"user": ["ann"] * len(items), "item": items})])
    options = {"negatives": 15, "cutoffs": [5, 10], "select_metric": "mrr@10"}
    if draws:
        with pytest.raises(
            ConfedError, match=f"domain a: 1 of .* fewer than {draws} are left to draw .*: leave these users"
        ):
            confed.run(method, frames, protocol="cold", rounds=1, options=options, out=tmp_path)
    else:
        assert confed.run(method, frames, protocol="cold", rounds=1, options=options, out=tmp_path).metrics
