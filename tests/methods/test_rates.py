"""η of item tables where nobody set it: from the training data, the same for everybody who has a part in the run."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.defaults.recipe import FACTS

import confed
from confed.data.split import TrainingData
from confed.methods.rates import PAPERS, facts_of, in_words, item_rate_factor
from confed.methods.registry import METHODS, method_named
from confed.ragged import Ragged
from confed.runs.prepare import Experiment
from confed.runs.settings import Settings, defaults_in_words, resolve, settled
from confed.testing import tiny
from tests.realdata import require
from tests.runs.short import FEW, train

SCALED = ("fedmf", "pfedrec", "cofedrec")
THREE = TrainingData(
    4,
    Ragged.group(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 0, 1, 0]), 3),
    Ragged.group(*[np.array([], dtype=np.int64)] * 2, 3),
)
"""Three people: one has the items 0, 1 and 2, one 0 and 1, one 0."""


def test_facts_by_hand():
    """Item 0 is had by all three, 1 by two, 2 by one; with one negative each the steps have 6, 4 and 2 rows."""
    facts = facts_of(THREE, batch_size=256, negatives=1)
    assert facts == {"items": 4.0, "rows": 4.0, "holders": pytest.approx((3 * 3 + 2 * 2 + 1) / 3 / 6, rel=1e-3)}
    assert facts_of(THREE, batch_size=3, negatives=1)["rows"] == pytest.approx((3 + 3 + 2) / 3, rel=1e-3)


def test_items_that_nobody_has_change_no_step():
    """The rate of the items is lr · items · η: twice the catalogue, half the factor."""
    wider = replace(THREE, items=8)
    one, other = (item_rate_factor(facts_of(data, 256, 1), 150) * data.items for data in (THREE, wider))
    assert one == pytest.approx(other, rel=0.1)


@given(st.integers(1, 10**6), st.floats(1, 256), st.floats(1e-7, 1), st.floats(1, 1000))
def test_any_data_gets_a_factor_of_two_digits(items, rows, holders, move):
    facts = {"items": float(items), "rows": rows, "holders": holders}
    found = item_rate_factor(facts, move)
    assert found > 0 and float(f"{found:.2g}") == found
    assert items * found * holders / rows == pytest.approx(move, rel=0.06)
    assert "a training step has" in in_words(facts)


@pytest.mark.parametrize("name", SCALED)
def test_a_run_has_the_number_and_says_where_it_is_from(name, tmp_path):
    experiment = Experiment.prepare(resolve(name, "mine", options=FEW), tiny.interactions())
    settings, config = experiment.settings, experiment.terms.config
    expected = facts_of(tiny.cut(seed=0).training, config.batch_size, config.train_negatives)
    assert settings.facts == expected
    assert config.item_rate_factor == item_rate_factor(expected, config.move / config.local_epochs) != PAPERS
    found = (
        f"item_rate_factor = {config.item_rate_factor:g}, because a training step has 63 rows, and of the 60 items one"
    )
    assert found in defaults_in_words(settings)
    (tmp_path / "config.toml").write_text(settings.to_toml())
    assert tomllib.loads(settings.to_toml())["method_options"]["item_rate_factor"] == config.item_rate_factor
    assert Settings.from_toml(tmp_path / "config.toml") == settings


@pytest.mark.parametrize("name", SCALED)
def test_what_is_set_stays(name):
    said = Experiment.prepare(resolve(name, "mine", options={**FEW, "item_rate_factor": 7.5}), tiny.interactions())
    assert said.settings.facts is None and said.terms.config.item_rate_factor == 7.5
    assert "item_rate_factor" not in defaults_in_words(said.settings)


def test_held_out_items_do_not_enter():
    method = METHODS["fedmf"]
    cuts = (tiny.cut(), tiny.cut_with_other_held_out_items())
    one, other = (method.measured(method.config(None, {}), cut) for cut in cuts)
    assert one == other != {}


def test_without_data_it_is_the_papers():
    for name in SCALED:
        config = method_named(name).config(None, {})
        assert config.item_rate_factor is None
        assert config.item_rate(100) == pytest.approx(config.learning_rate * 100 * PAPERS)


def test_only_where_the_tables_are_averaged():
    method = METHODS["fedmf"]
    for rule, follows in (("mean", True), ("sum", False), ("count", False)):
        assert bool(method.measured(method.config(None, {"aggregation": rule}), tiny.cut())) == follows
    alone = METHODS["local-only"]
    assert alone.measured(alone.config(None, {}), tiny.cut()) == {}
    assert alone.config(None, {}).item_rate_factor == PAPERS


@pytest.mark.parametrize("name", SCALED)
def test_where_papers_print_figures_their_factor_stays(name):
    method = method_named(name)
    for dataset in method.defaults:
        assert method.config(dataset, {}).item_rate_factor == PAPERS


def test_resume_serving_and_comparison_have_the_same_number(tmp_path):
    run = train(out=tmp_path, rounds=2)
    found = run.settings.method_options["item_rate_factor"]
    again = confed.resume(run.folder.path, rounds=3)
    assert again.settings.method_options["item_rate_factor"] == found and again.settings.facts == run.settings.facts
    assert confed.Run.open(run.folder.path)._prepared().terms.config.item_rate_factor == found
    (compared,) = confed.compare(["pfedrec"], tiny.interactions(), rounds=1, options=FEW, out=tmp_path)
    assert f"item_rate_factor = {found:g}" in compared["defaults"]


def test_the_same_facts_give_the_same_settings():
    """Stored figures are held against this."""
    run = Experiment.prepare(resolve("pfedrec", "mine", options=FEW), tiny.interactions()).settings
    assert settled(resolve("pfedrec", "mine", options=FEW), run.facts) == run
    assert settled(run, None) == run


def test_kept_tables_are_never_stepped_more_slowly_than_papers_do():
    for name, factor in (("fedmf", 24), ("pfedrec", 49), ("cofedrec", PAPERS)):
        method = method_named(name)
        assert method.settled(method.config(None, {}), FACTS["filmtrust"]).item_rate_factor == factor


def test_what_the_rule_would_make_of_movielens():
    experiment = Experiment.prepare(resolve("fedmf", "mine"), confed.load_dataset(require("ml-100k")))
    assert experiment.settings.facts == FACTS["ml-100k"]
    assert experiment.terms.config.item_rate_factor == 110
