"""JSON lines, by their name or by how they look."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from confed.data.interactions import Interactions
from confed.data.readers import read
from confed.errors import ConfedError

LINES = '{"customer": 7, "product": "x", "when": "2024-04-03"}\n{"customer": 8, "product": "y", "when": "2024-04-04"}\n'
ROWS = [("7", "x", 1.0, 1_712_102_400), ("8", "y", 1.0, 1_712_188_800)]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz", "a.csv", "a.txt", "a", "a.csv.gz"])
def test_they_are_known_by_name_or_first_line(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path, name, LINES)).frame.rows() == ROWS
    assert read(write(tmp_path, name, f"\n{LINES}"), user="customer").frame.rows() == ROWS


def test_the_format_can_be_said(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.log", LINES), format="jsonl").frame.rows() == ROWS


def test_keys_may_come_in_any_order_or_not_at_all_and_others_do_not_matter(tmp_path: Path) -> None:
    text = '{"user": 1, "item": 2, "more": {"a": [1]}}\n{"stars": 3, "item": "b", "user": 1.0, "more": "x"}\n'
    with pytest.raises(ConfedError, match=r"a\.jsonl, line 1: the rating is empty"):
        read(write(tmp_path, "a.jsonl", text))
    complete = text.replace('"user": 1,', '"user": 1, "stars": 5,')
    assert read(write(tmp_path, "a.jsonl", complete)).frame.rows() == [("1", "2", 5.0), ("1", "b", 3.0)]


def test_values_of_several_types_become_text(tmp_path: Path) -> None:
    text = '{"user": true, "item": "é\u2028"}\r\n{"user": 1, "item": 12345678901234567890123}\r\n'
    users = read(write(tmp_path, "a.jsonl", text)).frame
    assert users.rows() == [("true", "é\u2028", 1.0), ("1", "12345678901234567890123", 1.0)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            LINES + '\n{"customer": 9, "product":',
            4,
            "not JSON (Expecting value, column 27); every line must be an object",
        ),
        (LINES + "[1, 2]\n", 3, "not an object; every line must be an object such as"),
        ('[{"user": 1, "item": 2},\n{"user": 1, "item": 3}]', 1, "an array has to be written as such lines"),
        (LINES + '\n\n{"customer": "", "product": "x", "when": "2024-04-04"}', 5, "the user id is empty"),
        (LINES + '{"product": "x", "when": "2024-04-04"}', 3, "the user id is empty"),
        (LINES + '{"customer": 9, "product": "x", "when": "soon"}', 3, "the time stamp is 'soon', not a date"),
        ('{"user": {"id": 1}, "item": 2}', 1, "user ids of type Struct"),
        ('{"user": 1, "item": 2, "rating": NaN}\n', 1, "the rating is 'NaN', not a finite number"),
    ],
)
def test_the_line_of_a_fault_is_named(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, "a.json", text)
    with pytest.raises(ConfedError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"who": 1, "item": 2}\n')
    with pytest.raises(ConfedError, match=r"a\.jsonl: no column looks like the user id; its columns are who, item"):
        read(path)
    assert read(path, user="who").frame.rows() == [("1", "2", 1.0)]


def test_the_content_is_that_of_any_other_format(tmp_path: Path) -> None:
    rows = [("7", "ä,b", 3.5, 10), ("12", 'say "x"', 0.1, 5), ("7", "c", 1e-7, 5)]
    frame = pl.DataFrame(rows, schema=["user", "item", "rating", "timestamp"], orient="row")
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    numbers = [{**row, "user": int(row["user"])} for row in frame.to_dicts()]
    write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, numbers)))
    assert len({Interactions.of(tmp_path / f"a.{kind}").content_hash for kind in ("csv", "parquet", "jsonl")}) == 1
