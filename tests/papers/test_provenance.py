import subprocess

import pytest
from papers.cells import Cell, run_cells, settings_of
from papers.provenance import assume, code_here, compared, dumped, flat, record, retire
from papers.results import Results

import confed
from confed.data.registry import load
from confed.errors import ConfedError

TINY = "synthetic:users=40,items=80,seed=2"
CELL = Cell("fed3cr", TINY, "strict", 0, 2, "v", {"negatives": 20, "dim": 4, "item_rate": 1.0})


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository in the place of ours, with one commit; a function that calls git there."""
    monkeypatch.setattr("papers.provenance.ROOT", tmp_path)

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").touch()
    git("add", ".")
    git("commit", "-m", "first")
    return git


def test_the_commit_of_the_code(repository, tmp_path):
    clean = {"commit": repository("rev-parse", "HEAD"), "confed": confed.__version__}
    assert code_here() == clean
    for path in ("papers/x/results.jsonl", "docs/page.md"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("news")
    assert code_here() == clean, "results and pages make no figure"
    (tmp_path / "src" / "code.py").write_text("news")
    assert code_here() == {**clean, "dirty": True}


def test_a_copy_without_history_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr("papers.provenance.ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_here() == {"commit": None, "confed": confed.__version__}


def test_a_cell_knows_what_it_was_made_with(tmp_path):
    path = tmp_path / "results.jsonl"
    run_cells([CELL], path)
    made_with = Results(path).read()[CELL.name]["provenance"]
    assert made_with["confed"] == confed.__version__ and "commit" in made_with
    assert made_with["settings"]["content_hash"] == load(TINY).content_hash
    assert made_with["settings"] == dumped(settings_of(CELL)) | {
        "content_hash": made_with["settings"]["content_hash"]
    }, "options that are not set are there as well"
    assert list(compared(made_with, settings_of(CELL))) == []


def test_what_changes_no_figure_is_not_compared():
    today = settings_of(CELL)
    stored = record(today.model_copy(update={"chunk": 3, "checkpoint_seconds": 1.0, "source": "a/b"}), {})
    assert "source" not in stored["settings"]
    assert list(compared(stored, today)) == []


def test_differences_name_the_setting_both_values_and_a_remedy():
    today = settings_of(CELL)
    stored = record(today, {})
    stored["settings"]["patience"] = 7
    stored["settings"]["protocol"]["bygone"] = 1
    del stored["settings"]["method_options"]["alpha"]
    new, other, gone = compared(stored, today)
    assert new.startswith("method_options.alpha is 1.0 today and was no setting") and "--assume" in new
    assert other.startswith("patience was 7, today it is None: let the recipe say 7")
    assert gone.startswith("protocol.bygone was 1 and is no setting today") and "--retire" in gone


def test_what_is_assumed_and_retired_is_written_down_with_the_reason():
    today = settings_of(CELL)
    stored = record(today, {})
    del stored["settings"]["method_options"]["alpha"]
    stored["settings"]["protocol"]["bygone"] = 1
    assume(stored, "method_options.alpha", 1.0, "a constant")
    retire(stored, "protocol.bygone", "always so")
    assert list(compared(stored, today)) == []
    assert stored["assumed"] == [{"name": "method_options.alpha", "because": "a constant"}]
    assert stored["retired"] == [{"name": "protocol.bygone", "value": 1, "because": "always so"}]
    with pytest.raises(ConfedError, match="seed is a setting, not a section"):
        assume(stored, "seed.x", 1, "")


def test_flat():
    assert flat({"a": {"b": {"c": 1}, "d": {}}, "e": [2]}) == {"a.b.c": 1, "a.d": {}, "e": [2]}
