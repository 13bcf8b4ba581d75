from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from confed.cli.data import app
from confed.data.registry import load, load_dataset
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


def test_describe_says_which_columns_it_took(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("order,customer,sku,product_name,when,price\n1,a,x,Ink,2024-05-01,3\n2,a,y,Pen,2024-05-02,4\n")
    columns = {"user": "customer", "item": "sku", "rating": None, "timestamp": "when", "title": "product_name"}
    for command in (("describe", path), ("import", path, "--name", "mine")):
        assert call_json(*command)["columns"] == {**columns, "ignored": ["order", "price"]}
    printed = cells(call("describe", path))
    assert ["user column", "customer"] in printed and ["ignored columns", "order, price"] in printed
    assert ["rating column", "none, every interaction counts as 1"] in printed
    assert "columns" not in call_json("describe", "mine"), "an import has our names"
    assert "columns" not in call_json("describe", "synthetic:users=20,items=10")


def cells(printed: str) -> list[list[str]]:
    return [[cell.strip() for cell in re.split("[┃│]", line)[1:-1]] for line in printed.splitlines()]


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


def test_a_guess_at_dates_is_announced_and_can_be_said(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("customer,product,when\na,x,03/04/2024\na,y,04/03/2024\n")
    for command in (("describe", path), ("import", path, "--name", "mine")):
        result = CliRunner().invoke(app, [*map(str, command), "--json"], catch_exceptions=False)
        assert json.loads(result.stdout)["users"] == 1
        assert "notice:" in result.stderr and "is read as 2024-03-04, with the month first" in result.stderr
        assert "--date-order dmy" in result.stderr
    said = CliRunner().invoke(app, ["describe", str(path), "--date-order", "dmy"], catch_exceptions=False)
    assert (said.exit_code, said.stderr) == (0, "")


def test_remove_an_import(tmp_path: Path, cache: Path) -> None:
    path = call_json("import", log(tmp_path), "--name", "mine", *OPTIONS)["path"]
    size = Path(path).stat().st_size
    assert call_json("remove", "mine") == {"removed": "mine", "path": path, "bytes": size}
    assert call_json("list")["imported"] == []
    call("import", log(tmp_path), "--name", "mine", *OPTIONS)
    assert f"removed mine: {path} (" in call("remove", "mine")
    with pytest.raises(ConfedError, match="mine: there are no imports"):
        call("remove", "mine")
    with pytest.raises(ConfedError, match="ml-100k is a registered dataset: only imports can be removed"):
        call("remove", "ml-100k")


# --- several domains --------------------------------------------------------------------------------------


def shops(folder: Path) -> tuple[str, str]:
    """book=FILE and music=FILE; a and b buy in both, c and d in one."""
    for name, users in (("book", "aabc"), ("music", "abbd")):
        rows = "".join(f"{user};{name}{place};{place}\n" for place, user in enumerate(users))
        (folder / f"{name}.txt").write_text("who;what;when\n" + rows)
    return f"book={folder}/book.txt", f"music={folder}/music.txt"


def test_list_names_datasets_of_several_domains(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONFED_DATA", str(tmp_path))
    by_name = {row["name"]: row for row in call_json("list")["multi_domain"]}
    assert set(by_name) == {"douban", "amazon-phone-elec", "amazon-cloth-sport", "amazon-game-video"}
    douban = by_name["douban"]
    assert list(douban["domains"]) == ["book", "music"]
    assert douban["domains"]["music"]["interactions"] == 38_756
    assert (douban["at_hand"], douban["source"], douban["optional"]) == (False, "download", {"movie": None})
    assert "download: book, music" in call("list")
    assert "by hand: game, video" in call("list")
    for domain in ("music", "movie"):
        file = tmp_path / "douban" / f"interactions_{domain}.csv.gz"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert "download: book" in call("list")
    (tmp_path / "douban" / "interactions_book.csv.gz").touch()
    assert "yes, with movie" in call("list")
    assert "3,505 / 3,868" in call("list")


def test_describe_a_dataset_of_several_domains() -> None:
    facts = call_json("describe", require("douban"))
    assert facts["domains"]["book"]["items"] == 3_505
    assert facts["known_to"] == {"1": 0, "2": 882}
    assert facts["shared"] == {"book & music": 882}


def test_describe_shows_a_column_per_domain_and_the_overlap(tmp_path: Path) -> None:
    pairs = ",".join(shops(tmp_path))
    facts = call_json("describe", pairs, *OPTIONS)
    assert (facts["dataset"], facts["users"], facts["interactions"]) == ("book+music", 4, 8)
    assert facts["domains"]["music"]["users"] == 3
    assert facts["known_to"] == {"1": 2, "2": 2}
    printed = call("describe", pairs, *OPTIONS)
    lines = cells(printed)
    assert ["domain", "book", "music"] in lines
    assert ["item column", "what", "what"] in lines
    assert ["items", "4", "4"] in lines
    assert ["users known to 1 domain", "2"] in lines
    assert ["users known to 2 domains", "2"] in lines
    assert ["shared book & music", "2"] in lines
    assert ["content hash", facts["content_hash"]] in lines
    assert call_json("describe", "synthetic:domains=2,users=20,items=10")["known_to"] == {"1": 0, "2": 20}


def test_get_says_where_every_domain_is(cache: Path) -> None:
    facts = call_json("get", require("douban"))
    assert facts["paths"]["music"].endswith("douban/interactions_music.csv.gz")
    assert "Douban" in facts["terms"]
    assert "path music" in call("get", "douban")


def test_get_explains_a_missing_domain(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONFED_DATA", str(tmp_path))
    with pytest.raises(
        ConfedError, match=r"(?s)put the file at .*/interactions_phone\.csv\.gz.*Terms of the data: Amazon"
    ):
        call("get", "amazon-phone-elec")


def test_import_several_domains(tmp_path: Path, cache: Path) -> None:
    book, music = shops(tmp_path)
    arguments = ("import", "--domain", book, "--domain", music, "--name", "mine", *OPTIONS)
    facts = call_json(*arguments)
    assert (facts["dataset"], list(facts["domains"]), facts["users"]) == ("mine", ["book", "music"], 4)
    assert Path(facts["path"]) == cache / "imported" / "mine"
    assert load("mine").content_hash == facts["content_hash"]
    assert call_json("describe", "mine")["known_to"] == facts["known_to"]
    assert [one["name"] for one in call_json("list")["imported"]] == ["mine"]
    with pytest.raises(ConfedError, match="imported before"):
        call(*arguments)
    few = call_json(*arguments, "--overwrite", "--min-interactions", 1)
    assert few["content_hash"] == facts["content_hash"]
    call("import", facts["path"], "--name", "copy")
    assert load("copy").content_hash == facts["content_hash"]


def test_import_takes_a_file_or_domains(tmp_path: Path, cache: Path) -> None:
    book, music = shops(tmp_path)
    for wrong in ((), (log(tmp_path), "--domain", book, "--domain", music)):
        with pytest.raises(ConfedError, match="give either one FILE, or domain= NAME=FILE for each"):
            call("import", *wrong, "--name", "x")
    with pytest.raises(ConfedError, match="at least two, got book"):
        call("import", "--domain", book, "--name", "x", *OPTIONS)
    with pytest.raises(ConfedError, match="'book': a domain is written as its name and its file"):
        call("import", "--domain", "book", "--domain", music, "--name", "x", *OPTIONS)
    with pytest.raises(ConfedError, match=r"domain book: .*no column looks like the user id"):
        call("import", "--domain", book, "--domain", music, "--name", "x")
    assert not cache.exists()


# ----------------------------------------------------------------------------------------------------------


def test_mistakes_propagate(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ConfedError, match="no column looks like the user id"):
        call("describe", log(tmp_path))
    with pytest.raises(ConfedError, match="unknown time 'soon'"):
        call("describe", log(tmp_path), *OPTIONS, "--time", "soon")
    with pytest.raises(ConfedError, match="unknown dataset 'nothing'"):
        call("describe", "nothing")
    with pytest.raises(ConfedError, match="unknown dataset"):
        call("get", "nothing")
    with pytest.raises(ConfedError, match="unknown file format 'exel': did you mean excel"):
        call("import", log(tmp_path), "--name", "x", "--format", "exel")
    with pytest.raises(ConfedError, match="unknown date order"):
        call("describe", log(tmp_path), *OPTIONS, "--date-order", "ymd")
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
