"""Runs that rank a sample of users in their rounds, and everybody in the end."""

import pytest

import confed
from confed.errors import ConfedError
from confed.evaluation.sample import examined, sample_of
from confed.runs.finished import Run
from confed.testing import tiny, tiny_domains
from tests.runs.short import FEW

COMPANIES = {**FEW, "more_negatives": []}


def trained(method, folder, **said):
    data = tiny_domains.domains() if method == "fppdm" else tiny.interactions()
    options = COMPANIES if method == "fppdm" else {name: value for name, value in FEW.items() if name != "dim"}
    return confed.run(method, data, options=options, folder=folder, **said)


@pytest.mark.parametrize(
    "method", ["pfedrec", "fedmf", "cofedrec", "fedrap", "fed3cr", "fedncf", "local-only", "ease", "mf", "fppdm"]
)
def test_in_the_end_everybody_is_ranked(method, tmp_path):
    """In one round, which both choose: the same figures, and the same line that has to be passed."""
    usual = trained(method, tmp_path / "usual", rounds=1)
    sampled = trained(method, tmp_path / "sampled", rounds=1, eval_users=5)
    assert sampled.metrics == pytest.approx(usual.metrics)
    assert sampled.summary["validation"] == usual.summary["validation"]
    assert sampled.summary.get("popularity") == usual.summary.get("popularity")
    assert sampled.summary["eval_users"] == 5 and list(sampled.summary["views"]) == [sampled.summary["view"]]
    for domain in usual.domains or (None,):
        ranks, others = sampled.ranks(domain=domain), usual.ranks(domain=domain)
        assert ranks.above.tolist() == others.above.tolist() and ranks.equal.tolist() == others.equal.tolist()


def test_in_a_round_the_sample_is_ranked(tmp_path):
    usual = trained("pfedrec", tmp_path / "usual", rounds=1)
    sampled = trained("pfedrec", tmp_path / "sampled", rounds=1, eval_users=6)
    cut = usual._prepared().cut
    some = examined(cut.training.ids, 0, *sample_of(cut, 0, 6).values())
    hits = usual.ranks().per_user("hr", 10, usual.settings.protocol.rank_ties)[some]
    assert sampled.lines[0]["views"]["local"]["test"]["hr@10"] == pytest.approx(100 * hits.mean())


def test_it_is_served_and_resumed_as_any_run(tmp_path):
    run = trained("pfedrec", tmp_path / "run", rounds=3, eval_users=5)
    assert Run.open(run.folder.path).recommend("3", 2) == run.recommend("3", 2)
    longer = confed.resume(run.folder.path, rounds=5)
    whole = trained("pfedrec", tmp_path / "whole", rounds=5, eval_users=5)
    assert longer.metrics == whole.metrics and longer.summary["best_round"] == whole.summary["best_round"]


@pytest.mark.apart
def test_sites_elsewhere_know_who_is_examined(tmp_path):
    here = trained("pfedrec", tmp_path / "here", rounds=2, eval_users=7, dtype="float64")
    there = trained(
        "pfedrec", tmp_path / "there", rounds=2, eval_users=7, dtype="float64", engine="processes", workers=2
    )
    assert there.metrics == pytest.approx(here.metrics)
    assert [line["views"] for line in there.lines] == [line["views"] for line in here.lines]


def test_where_it_would_do_nothing_it_is_refused(tmp_path):
    with pytest.raises(ConfedError, match="does nothing where nothing is held out"):
        confed.run("pfedrec", tiny.interactions(), rounds=1, holdout=False, eval_users=5)
    with pytest.raises(ConfedError, match="eval_users= does nothing under protocol"):
        confed.run("fppdm", "synthetic:domains=2,users=60,items=90", rounds=1, protocol="cold", eval_users=5)
    assert not list(tmp_path.iterdir())
