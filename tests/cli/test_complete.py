import os
import subprocess
import sys

import pytest

from confed.cli import complete


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file, a hidden one, and two runs."""
    monkeypatch.chdir(tmp_path)
    for run in ("runs/pfedrec-1", "ease-2"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.toml").touch()
    (tmp_path / "mine.csv").touch()
    (tmp_path / ".hidden").touch()


def test_methods():
    assert complete.methods("fedm") == ["fedmf", "fedmf-silo"]
    assert complete.methods("none") == []


def test_datasets_are_names_and_files(place):
    assert complete.datasets("ml-1")[:2] == ["ml-100k", "ml-1m"]
    assert complete.datasets("mi") == ["mine.csv"]
    assert complete.datasets("./mi") == ["./mine.csv"]
    assert "runs/" in complete.datasets("")
    assert ".hidden" not in complete.datasets("")
    assert complete.datasets("./.h") == ["./.hidden"]
    assert complete.datasets("nowhere/x") == []


def test_runs_are_folders_that_hold_one(place):
    assert complete.runs("") == ["ease-2", "runs/pfedrec-1", "runs/"]
    assert complete.runs("runs/p") == ["runs/pfedrec-1"]


def test_the_shell_gets_them():
    """As bash asks: what typer makes of it is what a user sees."""
    asked = {"_CONFED_COMPLETE": "complete_bash", "COMP_WORDS": "confed run pfe", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", "from confed.cli.main import app; app(prog_name='confed')"]
    answer = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked}, check=False)
    assert answer.stdout.split() == ["pfedrec"]
