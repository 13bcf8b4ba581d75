"""Stored figures are those that the recipes would run today; where they are not, that is said of the right ones."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from papers.cells import Cell, run_cells, settings_of
from papers.check import RECIPES, main, stale
from papers.provenance import dumped
from papers.results import Results

import papers
from confed.methods.registry import method_named

TINY = "synthetic:users=40,items=80,seed=2"


def found(paper):
    recipe = RECIPES[paper]
    return list(stale(recipe.cells(), Results(recipe.RESULTS).read()))


def names(lines):
    return {line.partition(":")[0] for line in lines}


@pytest.mark.parametrize("paper", RECIPES)
def test_every_stored_figure_is_what_would_be_run_today(paper):
    assert found(paper) == [], "`python -m papers.check` says the same"


@pytest.mark.parametrize("paper", RECIPES)
def test_cells_have_names_of_their_own_and_settings_that_hold(paper):
    cells = RECIPES[paper].cells()
    assert len({cell.name for cell in cells}) == len(cells)
    assert all(cell.name.isascii() for cell in cells)
    for cell in cells:
        dumped(settings_of(cell))


@pytest.mark.parametrize("paper", RECIPES)
def test_records_and_results_tell_one_story(paper):
    listed = {cell.name: cell for cell in RECIPES[paper].cells()}
    for name, result in Results(RECIPES[paper].RESULTS).read().items():
        made_with = result["provenance"]
        settings = made_with["settings"]
        assert result["options"] == listed[name].options, name
        assert settings["protocol"]["name"] == result["protocol"], name
        assert all(settings[key] == result[key] for key in ("method", "dataset", "seed")), name
        assert made_with["commit"] and made_with["confed"], name
        if "diverged" not in result:
            stopped = result["rounds"] < settings["rounds"]
            assert result["rounds"] <= settings["rounds"] and (settings["patience"] or not stopped), name


def test_a_changed_default_of_a_dataset_makes_its_cells_stale_and_no_others(monkeypatch):
    method = type(method_named("cofedrec"))
    changed = {**method.defaults, "filmtrust": {**method.defaults["filmtrust"], "temperature": 0.7}}
    monkeypatch.setattr(method, "defaults", changed)
    lines = found("cofedrec")
    assert names(lines) == {f"filmtrust_{protocol}_cofedrec_full_seed0" for protocol in ("paper", "strict")}
    assert all("method_options.temperature was 0.5, today it is 0.7: let the recipe say 0.5" in line for line in lines)
    assert found("foundation") == []


def test_a_changed_default_of_a_method_and_a_new_option(monkeypatch):
    class Changed(method_named("ease").config_class):
        regularisation: float = 7.0
        news: int = 3

    monkeypatch.setattr(type(method_named("ease")), "config_class", Changed)
    lines = found("foundation")
    assert names(lines) == {f"ml-100k_{p}_ease_seed{seed}" for p in ("paper", "strict") for seed in range(3)}
    assert sum("method_options.regularisation was 300.0, today it is 7.0" in line for line in lines) == 6
    assert sum("--assume method_options.news=VALUE" in line for line in lines) == 6
    assert len(lines) == 12


@pytest.fixture
def one(tmp_path, monkeypatch):
    """A recipe of one cell that is run, in the place of ours."""

    class Recipe:
        RESULTS = tmp_path / "results.jsonl"
        cells = staticmethod(lambda: [Cell("popularity", TINY, "strict", 0, options={"negatives": 20})])

    monkeypatch.setattr("papers.check.RECIPES", {"one": Recipe})
    run_cells(Recipe.cells(), Recipe.RESULTS)
    return Recipe


def test_an_option_that_followed_from_the_data_is_held_against_the_same_facts(tmp_path, monkeypatch):
    few = {"negatives": 20, "dim": 4}
    cell = Cell("fedmf", TINY, "strict", 0, rounds=1, options=few)
    run_cells([cell], tmp_path / "results.jsonl")
    stored = Results(tmp_path / "results.jsonl").read()
    (made_with,) = (result["provenance"]["settings"] for result in stored.values())
    assert made_with["facts"].keys() == {"items", "rows", "holders"}
    assert list(stale([cell], stored)) == []
    monkeypatch.setattr(method_named("fedmf").config_class, "move", 15.0)
    (line,) = stale([cell], stored)
    assert "method_options.item_rate_factor was" in line


def test_a_file_is_known_by_the_hash_that_its_cell_says(one):
    (cell,) = one.cells()
    stored = Results(one.RESULTS).read()
    (result,) = stored.values()
    told = replace(cell, content_hash=result["provenance"]["settings"]["content_hash"])
    assert list(stale([told], stored)) == []
    (line,) = stale([replace(cell, content_hash="abc")], stored)
    assert "synthetic:users=40,items=80,seed=2 has abc" in line


@pytest.fixture
def program(monkeypatch, capsys):
    """Call `python -m papers.check`; (exit code or message, standard output, standard error)."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["papers.check", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
            sys.exit(0)
        shown = capsys.readouterr()
        return exit_.value.code, shown.out, shown.err

    return call


def test_other_data_and_cells_that_nobody_lists(one, program):
    assert program()[0] == 0
    with Results(one.RESULTS).changed() as stored:
        (cell,) = stored.values()
        stored["old"] = {**cell, "name": "old"}
        cell["provenance"]["settings"]["content_hash"] = "abc"
    unlisted, other = program()[0].splitlines()
    assert unlisted.startswith("one: old: no cell of the recipe has this name")
    assert ": its data had the content hash abc, synthetic" in other


def test_a_new_setting_is_assumed_and_one_that_is_gone_is_retired(one, program):
    with Results(one.RESULTS).changed() as stored:
        (cell,) = stored.values()
        del cell["provenance"]["settings"]["patience"]
        cell["provenance"]["settings"]["protocol"]["bygone"] = "x"
    assert "patience is None today and was no setting" in program()[0]
    assert program("--assume", "patience=null", "--because", "nobody could stop")[1] == "1 cells know it now\n"
    assert "protocol.bygone was 'x'" in program()[0]
    assert program("--retire", "protocol.bygone", "--because", "always so")[1] == "1 cells know it now\n"
    assert program()[0] == 0
    (cell,) = Results(one.RESULTS).read().values()
    assert cell["provenance"]["settings"]["patience"] is None
    assert cell["provenance"]["assumed"] == [{"name": "patience", "because": "nobody could stop"}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--assume", "patience=3"], "say --because"),
        (["--assume", "patience", "--because", "b"], "write it as name=value"),
        (["--assume", "patience=3", "--because", "b"], "no stored cell that this is news to"),
        (["--retire", "patience", "--because", "b"], "no stored cell that this is news to"),
    ],
)
def test_what_cannot_be_meant_is_refused(one, program, words, message):
    before = one.RESULTS.read_text()
    code, _, err = program(*words)
    assert code == 2 and message in " ".join(err.split())
    assert one.RESULTS.read_text() == before


def test_every_recipe_is_checked():
    folders = {path.parent.name for path in Path(papers.__file__).parent.glob("*/recipe.py")}
    assert folders == set(RECIPES)


def test_figures_that_are_older_than_their_records_say_so():
    """A run writes down its data's hash; where that had to be found out later, the cell says it was backfilled."""
    for recipe in RECIPES.values():
        for name, result in Results(recipe.RESULTS).read().items():
            made_with = result["provenance"]
            found_out = "content_hash" in {one["name"] for one in made_with.get("assumed", [])}
            assert made_with.get("backfilled", False) == found_out, name
