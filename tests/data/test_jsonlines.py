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


# --- what parsers would take ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ['[{"user": 1, "item": 2},\n {"user": 3, "item": 4}]', '["user", "item"]\n[1, 2]\n', '[\n{"user": 1, "item": 2}]'],
)
def test_arrays_are_recognised_whatever_the_file_is_called(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfedError, match=r"a\.csv, line 1: .*an array has to be written as such lines"):
        read(write(tmp_path, "a.csv", text))


def test_they_are_not_read_as_another_format(tmp_path: Path) -> None:
    """Each line would be one user, and its own item."""
    for format_name in ("csv", "tsv", "movielens"):
        with pytest.raises(ConfedError, match=rf"a\.csv: its lines are JSON, not {format_name}; leave out format="):
            read(write(tmp_path, "a.csv", LINES), format_name)
    assert read(write(tmp_path, "b.csv", "[user],[item]\n1,2\n")).frame.rows() == [("1", "2", 1.0)]
    assert read(write(tmp_path, "c.csv", f"  \n{LINES}")).frame.rows() == ROWS


@pytest.mark.parametrize(
    "line", ['{"customer": 9, "customer": 10, "product": "x"}', '{"product": "x", "product": [], "customer": 9}']
)
def test_a_key_that_occurs_twice(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfedError, match=r"a\.jsonl, line 4: the key '\w+' occurs twice in an object"):
        read(write(tmp_path, "a.jsonl", f"{LINES}\n{line}\n"))


def test_a_key_that_occurs_again_deeper_is_another(tmp_path: Path) -> None:
    line = '{"customer": 9, "product": "x", "when": "2024-04-03", "more": {"customer": {"product": 1}}}\n'
    assert read(write(tmp_path, "a.jsonl", LINES + line)).frame.height == 3


@pytest.mark.parametrize("bracket", ["[]", '{"a":}'])
def test_brackets_within_brackets(tmp_path: Path, bracket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, closed = bracket[:-1], bracket[-1]

    def nested(depth: int) -> Path:
        more = f"{opened * depth}1{closed * depth}"
        return write(
            tmp_path, "a.jsonl", f'{LINES}\n{{"customer": 9, "product": 1, "when": "2024-04-03", "x": {more}}}'
        )

    assert read(nested(63)).frame.height == 3
    for depth in (64, 1_000, 100_000):
        with pytest.raises(
            ConfedError, match=rf"a\.jsonl, line 4 has so many brackets in each other: {depth + 1:,}, .* 64"
        ):
            read(nested(depth))
    monkeypatch.setenv("CONFED_MAX_DEPTH", "5")
    with pytest.raises(ConfedError, match=r"line 4 .*: 6, the limit is 5"):
        read(nested(5))


def test_many_brackets_beside_each_other_are_not_deep(tmp_path: Path) -> None:
    line = json.dumps({"customer": 9, "product": "[" * 500, "when": "2024-04-03", "more": [[1]] * 200})
    assert read(write(tmp_path, "a.jsonl", LINES + line)).frame.height == 3


def test_too_many_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of objects that have no key in common has a column for each."""
    monkeypatch.setenv("CONFED_MAX_COLUMNS", "50")
    lines = "\n".join(json.dumps({"user": 1, "item": 2, f"k{number}": 1}) for number in range(100))
    for end in ("", '\n{"user": "a", "item": []}'):
        with pytest.raises(ConfedError, match=r"a\.jsonl has so many different keys: 102, the limit is 50"):
            read(write(tmp_path, "a.jsonl", lines + end))


def test_numbers_of_thousands_of_digits(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", f'{LINES}{{"customer": {"1" * 5000}, "product": 1, "when": "x"}}')
    with pytest.raises(ConfedError, match=r"a\.jsonl"):
        read(path)
