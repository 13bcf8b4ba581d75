import json
import os
import sys

import pytest

import confed
from confed.cli import report
from confed.cli.main import main
from confed.errors import ConfedError
from confed.runs.folder import newest
from confed.testing.tiny import interactions

OPTIONS = {"negatives": 15, "cutoffs": "5,10"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    for age, method in ((3, "popularity"), (2, "pfedrec"), (1, "popularity")):
        run = confed.run(method, interactions(), out=out, rounds=1, options=OPTIONS)
        stamp = 1_800_000_000 - age
        os.utime(run.folder.path / "summary.json", (stamp, stamp))
    return out


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["confed", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_the_page_of_a_run_lies_in_its_folder(runs, monkeypatch, capsys):
    folder = newest(runs, "pfedrec")
    assert call(monkeypatch, folder, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bytes"] == (folder / "report.html").stat().st_size


def test_a_folder_to_write_to(runs, monkeypatch, tmp_path):
    assert call(monkeypatch, newest(runs, "pfedrec"), "--out", tmp_path) == 0
    assert (tmp_path / "report.html").stat().st_size > 0


def test_the_newest_run_of_a_method(runs):
    assert newest(runs, None).name.startswith("popularity")
    assert newest(runs, "pfedrec").name.startswith("pfedrec")
    with pytest.raises(ConfedError, match="holds no finished run of fedmf"):
        newest(runs, "fedmf")


@pytest.mark.parametrize(("screen", "opened"), [(True, 1), (False, 0)])
def test_a_browser_is_opened_only_where_somebody_sees_it(runs, monkeypatch, tmp_path, screen, opened):
    asked = []
    monkeypatch.setattr(report.webbrowser, "open", asked.append)
    monkeypatch.setattr(report, "has_screen", lambda: screen)
    page = tmp_path / "page.html"
    assert call(monkeypatch, runs, "--latest", "--open", "--out", page) == 0
    assert asked == [page.as_uri()] * opened


def test_a_method_without_a_choice_is_an_error(runs, monkeypatch, capsys):
    assert call(monkeypatch, newest(runs, "pfedrec"), "--method", "pfedrec") == 2
    assert "--latest" in capsys.readouterr().err


def test_a_folder_of_runs_is_told_from_a_run(runs, monkeypatch, capsys):
    def said(*arguments):
        assert call(monkeypatch, *arguments) == 2
        return " ".join(capsys.readouterr().err.split())

    assert "it holds some: name one, or take the newest with --latest" in said(runs)
    assert "is a run itself; --latest chooses among the runs of a folder, leave it out" in said(
        newest(runs), "--latest"
    )


def test_a_page_is_not_put_where_there_is_no_folder(runs, monkeypatch, capsys, tmp_path):
    missing = tmp_path / "not" / "there"
    assert call(monkeypatch, runs, "--latest", "--out", missing / "page.html") == 2
    assert f"{missing}: there is no such folder" in " ".join(capsys.readouterr().err.split())
    assert not missing.parent.exists()


def test_samples_can_be_left_out(runs, monkeypatch, tmp_path):
    for name, more in (("with.html", ()), ("without.html", ("--no-samples",))):
        assert call(monkeypatch, runs, "--latest", "--out", tmp_path / name, *more) == 0
    assert "What is recommended" in (tmp_path / "with.html").read_text("utf-8")
    assert "What is recommended" not in (tmp_path / "without.html").read_text("utf-8")


def test_a_folder_that_is_no_run_is_named(tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, tmp_path) == 2
    assert "not a run folder" in capsys.readouterr().err.replace("\n", " ")
