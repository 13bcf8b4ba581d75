"""Defaults, filter and published figures follow the content of the data, whatever it is called."""

import sys

import numpy as np
import polars as pl
import pytest

import confed
from confed.cli.main import main
from confed.data.catalogue import REGISTRY, Copy, DatasetEntry
from confed.data.interactions import Interactions
from confed.data.registry import import_dataset
from confed.data.shelf import find_local
from confed.methods.rates import AS_PUBLISHED
from confed.methods.registry import method_named
from confed.runs.api import Run
from confed.testing import tiny
from tests.realdata import require
from tests.runs.short import FEW, train

LINE = (
    "what pfedrec has for made-up (by its content this data is made-up): learning_rate = 0.07, item_rate_factor = 80.0"
)


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """The path of a dataset of the catalogue; its method has a learning rate for it, and one user has too few items."""
    short = pl.DataFrame([("99", "1", 1.0, 1), ("99", "2", 1.0, 2)], tiny.interactions().frame.schema, orient="row")
    monkeypatch.setenv("CONFED_DATA", str(tmp_path))
    path = tmp_path / "made-up.csv"
    pl.concat([tiny.interactions().frame, short]).write_csv(path)
    data = Interactions.of(path)
    copy = Copy(path.name, "real", data.content_hash)
    entry = DatasetEntry("made-up", "Made up", (copy,), data.n_users, data.n_items, len(data), "", "")
    monkeypatch.setitem(REGISTRY, "made-up", entry)
    monkeypatch.setattr(type(method_named("pfedrec")), "defaults", {"made-up": {"learning_rate": 0.07, **AS_PUBLISHED}})
    return path


def test_by_path_by_frame_and_imported_as_by_name(made_up, tmp_path, monkeypatch):
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    import_dataset(Interactions.of(made_up), "mine")
    by_name = train("made-up", out=tmp_path / "runs")
    assert by_name.settings.method_options["learning_rate"] == 0.07
    assert by_name.summary["users"] == tiny.USERS
    for other in (made_up, str(made_up), pl.read_csv(made_up), "mine"):
        found = train(other, out=tmp_path / "runs")
        assert found.settings.method_options == by_name.settings.method_options
        assert found.metrics == by_name.metrics
        assert found.summary["defaults"] == by_name.summary["defaults"] == LINE


def test_resume_and_serving_know_it_from_the_folder(made_up, tmp_path):
    run = train(made_up, out=tmp_path / "runs")
    again = confed.resume(run.folder.path, rounds=4)
    assert again.settings.known == "made-up"
    assert Run.open(run.folder.path).recommend("1", k=3) == again.recommend("1", k=3)


def test_a_changed_row_is_somebodys_own_data(made_up, tmp_path):
    frame = pl.read_csv(made_up).with_columns(rating=pl.when(pl.int_range(pl.len()) == 5).then(9.0).otherwise("rating"))
    said = []
    run = train(frame, out=tmp_path / "runs", notice=said.append)
    assert "1 of 25 users are left out" in said[0], "of one's own data nobody goes without a word"
    assert run.settings.known is None
    assert run.settings.method_options["learning_rate"] == 0.1
    assert run.summary["defaults"].startswith("what pfedrec has for any data, ")
    assert "how fast it learns follows from the data: item_rate_factor = " in run.summary["defaults"]


def test_the_line_is_printed(made_up, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = [word for name, value in FEW.items() for word in ("--set", f"{name}={value}")]
    for words in (["run", "pfedrec", str(made_up)], ["compare", "pfedrec", "popularity", "--dataset", str(made_up)]):
        monkeypatch.setattr(sys, "argv", ["confed", *words, "--rounds", "1", *options])
        with pytest.raises(SystemExit):
            main()
        shown = " ".join(capsys.readouterr().out.split())
        assert f"defaults: where you said nothing, {LINE}. `confed methods show pfedrec` explains" in shown
    assert "popularity, defaults: where you said nothing, what popularity has for any data (by its content" in shown


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_movielens_by_path_is_movielens(protocol, tmp_path):
    path = find_local(require("ml-100k"))
    one, other = (
        confed.run("cofedrec", source, protocol=protocol, rounds=1, options={"dim": 4}, out=tmp_path)
        for source in ("ml-100k", path)
    )
    assert other.settings.method_options == one.settings.method_options
    assert other.settings.config().contrast == 0.01
    mine, theirs = (run._prepared().cut for run in (one, other))
    assert mine.user_ids == theirs.user_ids
    assert np.array_equal(mine.test, theirs.test) and np.array_equal(mine.validation, theirs.validation)
    assert other.metrics == one.metrics
    assert other.summary["published"] == one.summary["published"]
    assert bool(one.summary["published"]) == (protocol == "paper")
