from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from confed.cli.data import app
from confed.data import load_dataset
from confed.errors import ConfedError
from tests.realdata import require


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def call(*arguments: object) -> str:
    """Standard output of a command that must succeed."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def call_json(*arguments: object) -> dict[str, Any]:
    """With --json, standard output is one JSON object and nothing else."""
    parsed = json.loads(call(*arguments, "--json"))
    assert isinstance(parsed, dict)
    return parsed


def log(folder: Path) -> Path:
    path = folder / "log.txt"
    path.write_text("who;what;stars;when\na;x;5;20\na;y;4;10\nb;x;3;30\n")
    return path


OPTIONS = ("--user-column", "who", "--item-column", "what", "--timestamp-column", "when", "--separator", ";")


def test_list_names_every_dataset(cache: Path) -> None:
    listed = call_json("list")
    by_name = {row["name"]: row for row in listed["datasets"]}
    assert {"ml-100k", "ml-1m", "filmtrust", "qb-article"} <= set(by_name)
    assert by_name["ml-100k"]["interactions"] == 100_000
    assert by_name["qb-article"]["source"] == "by hand"
    assert listed["imported"] == []
    printed = call("list")
    for name in [*by_name, "synthetic"]:
        assert name in printed


def test_list_knows_what_is_at_hand(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONFED_DATA", str(tmp_path))
    file = tmp_path / "ml-1m" / "ratings.dat"
    file.parent.mkdir()
    file.touch()
    paths = {row["name"]: row["path"] for row in call_json("list")["datasets"]}
    assert paths["ml-1m"] == str(file)
    assert paths["ml-100k"] is None


def test_describe_a_file(tmp_path: Path) -> None:
    facts = call_json("describe", log(tmp_path), *OPTIONS)
    assert (facts["dataset"], facts["users"], facts["items"], facts["interactions"]) == ("log", 2, 2, 3)
    assert facts["time"] == "real"
    few = call_json("describe", log(tmp_path), *OPTIONS, "--min-interactions", 2, "--time", "none")
    assert (few["users"], few["time"]) == (1, "none")
    printed = call("describe", log(tmp_path), *OPTIONS)
    assert "distinct pairs" in printed
    assert facts["content_hash"] in printed.replace("\n", "").replace("│", "").replace(" ", "")


def test_describe_understands_tabs_and_missing_headers(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("alice\tsong\nbob\ttune\n")
    facts = call_json("describe", path, "--separator", "\\t", "--no-header")
    assert (facts["users"], facts["items"]) == (2, 2)


def test_describe_a_dataset() -> None:
    facts = call_json("describe", require("filmtrust"))
    assert (facts["dataset"], facts["users"], facts["items"], facts["interactions"]) == (
        "filmtrust",
        1_227,
        2_059,
        34_888,
    )


def test_describe_synthetic() -> None:
    facts = call_json("describe", "synthetic:users=20,items=10,interactions_per_user=5")
    assert (facts["users"], facts["min_per_user"]) == (20, 5)


def test_get_says_where_the_data_is(cache: Path) -> None:
    facts = call_json("get", require("filmtrust"))
    assert facts["path"].endswith("filmtrust/interactions.csv.gz")
    assert facts["interactions"] == 34_888
    assert "FilmTrust" in facts["terms"]


def test_import_makes_a_name(tmp_path: Path, cache: Path) -> None:
    facts = call_json("import", log(tmp_path), "--name", "mine", *OPTIONS, "--rating-column", "stars")
    assert (facts["dataset"], facts["users"], facts["interactions"]) == ("mine", 2, 3)
    assert Path(facts["path"]).is_relative_to(cache)
    data = load_dataset("mine")
    assert data.frame.rows() == [("a", "y", 4.0, 10), ("a", "x", 5.0, 20), ("b", "x", 3.0, 30)]
    assert call_json("describe", "mine")["content_hash"] == facts["content_hash"]
    assert [one["name"] for one in call_json("list")["imported"]] == ["mine"]
    assert "imported" in call("list")


def test_import_can_filter_and_overwrite(tmp_path: Path, cache: Path) -> None:
    arguments = ("import", log(tmp_path), "--name", "mine", *OPTIONS)
    call(*arguments)
    with pytest.raises(ConfedError, match="imported before"):
        call(*arguments)
    assert call_json(*arguments, "--overwrite", "--min-interactions", 2)["users"] == 1
    assert load_dataset("mine").users == ["a"]


def test_import_reads_parquet(tmp_path: Path, cache: Path) -> None:
    pl.DataFrame({"uid": [1], "iid": [2]}).write_parquet(tmp_path / "a.parquet")
    assert call_json("import", tmp_path / "a.parquet", "--name", "p")["time"] == "none"


def test_mistakes_propagate(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ConfedError, match="no column looks like the user id"):
        call("describe", log(tmp_path))
    with pytest.raises(ConfedError, match="unknown time 'soon'"):
        call("describe", log(tmp_path), *OPTIONS, "--time", "soon")
    with pytest.raises(ConfedError, match="unknown dataset 'nothing'"):
        call("describe", "nothing")
    with pytest.raises(ConfedError, match="unknown dataset"):
        call("get", "nothing")
    with pytest.raises(ConfedError, match="unknown file format 'excel'"):
        call("import", log(tmp_path), "--name", "x", "--format", "excel")
    assert not cache.exists()


def test_notices_stay_off_standard_output(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset that has to be fetched: terms on standard error, one object on standard output."""
    own = require("filmtrust")
    source = Path(call_json("get", own)["path"])
    monkeypatch.delenv("CONFED_DATA")
    text = load_text(source)

    def answer(_: str, target: Path, progress: Any) -> None:
        target.write_text(text)
        progress("filmtrust", len(text), len(text))

    monkeypatch.setattr("confed.data.sources._download", answer)
    result = CliRunner().invoke(app, ["get", "filmtrust", "--json"], catch_exceptions=False)
    assert json.loads(result.stdout)["interactions"] == 34_888
    assert "Terms of the data" in result.stderr
    assert "Terms of the data" not in result.stdout


def load_text(path: Path) -> str:
    """Our copy as the publisher's file: tabs, no header."""
    frame = pl.read_csv(path, infer_schema=False)
    return frame.write_csv(include_header=False, separator="\t")
