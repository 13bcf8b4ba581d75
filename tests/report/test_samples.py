"""A few users and what is recommended to them."""

import numpy as np
import pytest

import confed
from confed.report.samples import samples
from confed.testing import tiny, tiny_domains
from tests.runs.short import train_companies

FEW = {"negatives": 15, "cutoffs": [5, 10]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return confed.run("pfedrec", tiny.interactions(), out=tmp_path_factory.mktemp("runs"), rounds=2, options=FEW)


def test_a_light_a_median_and_a_heavy_user(run):
    lengths = run.training_items().lengths
    shown = list(samples(run))
    assert [sample.kind for sample in shown] == ["light", "median", "heavy"]
    assert [sample.trained for sample in shown] == np.sort(lengths)[[2, 11, 20]].tolist()
    assert list(samples(run)) == shown


def test_what_a_user_had_and_what_is_recommended_to_it(run):
    names, ids = run.item_names(), run.user_ids()
    for sample in samples(run):
        had = [names[item] for item in run.training_items()[ids.index(sample.user)]]
        assert sample.had == had[-5:]
        assert sample.recommended == [one.item for one in run.recommend(sample.user, 5)]
        assert not set(sample.recommended) & set(had)


def test_titles_stand_for_items_where_they_are_known(tmp_path):
    data = tiny.interactions()
    titled = confed.Interactions.of(data.frame, titles={item: f"film {item}" for item in data.items[::2]})
    run = confed.run("popularity", titled, out=tmp_path, options=FEW)
    shown = [name for sample in samples(run) for name in (*sample.had, *sample.recommended)]
    assert {name.startswith("film ") for name in shown} == {True, False}
    assert all(name in data.items or name.removeprefix("film ") in data.items[::2] for name in shown)


def test_of_several_domains_the_median_user_of_each(tmp_path):
    run = train_companies(tmp_path, rounds=1)
    shown = list(samples(run))
    assert [sample.domain for sample in shown] == list(tiny_domains.domains().names)
    for sample in shown:
        assert sample.kind == "median" and sample.user in run.user_ids(sample.domain)
        assert len(sample.recommended) == 5


def test_nobody_without_training_items_is_shown(tmp_path):
    data = "synthetic:domains=2,users=60,items=60"
    run = train_companies(tmp_path, rounds=1, data=data, protocol="cold", options={"select_metric": "mrr@10"})
    assert (run.training_items("a").lengths == 0).any()
    assert all(sample.trained == len(sample.had) > 0 or len(sample.had) == 5 for sample in samples(run))
