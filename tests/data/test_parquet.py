"""Parquet of strangers: types, names, metadata and sizes that nobody meant."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confed.data.interactions import Interactions
from confed.data.readers import read
from confed.errors import ConfedError

INT64 = {"dtype": pl.Int64}


def written(folder: Path, name: str = "a.parquet", **columns: Any) -> Path:
    path = folder / name
    frame = pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"], **columns})
    frame.write_parquet(path)
    return path


# --- types ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pl.Series([1.0, 1e300]), "1e\\+300"),
        (pl.Series([1.0, 9.3e18]), "9.3e\\+18"),
        (pl.Series([1.5, 1e15]), "1000000000000000.0"),
        (pl.Series([1, 2**64 - 1], dtype=pl.UInt64), "18446744073709551615"),
        (pl.Series([1, 2**100], dtype=pl.Int128), "1267650600228229401496703205376"),
        (pl.Series(["1", "9300000000000000000"]), "'9300000000000000000'"),
        (pl.Series([0, 2**31 - 1], dtype=pl.Int32).cast(pl.Date), "2147483647 days from 1970"),
        (pl.Series([0, -(2**62)]).cast(pl.Datetime("ms")), "-4611686018427387904 ms from 1970"),
        (pl.Series([0, -(2**63)]).cast(pl.Datetime("us")), "-9223372036854775808 us from 1970"),
    ],
)
def test_time_stamps_beyond_64_bits(tmp_path: Path, column: pl.Series, shown: str) -> None:
    message = rf"a\.parquet, row 2: the time stamp is {shown}, which does not fit into 64 bits; .*timestamp="
    with pytest.raises(ConfedError, match=message):
        read(written(tmp_path, timestamp=column))


@pytest.mark.parametrize(
    ("column", "stamps"),
    [
        (pl.Series([dt.date(9999, 12, 31), dt.date(1, 1, 1)]), [253_402_214_400, -62_135_596_800]),
        (pl.Series([0, -756_000]).cast(pl.Int32).cast(pl.Date), [0, -65_318_400_000]),  # the year -100
        (pl.Series([1_500, 2_500]).cast(pl.Datetime("ns")), [1, 2]),
        (pl.Series(["5", "6"], dtype=pl.Categorical), [5, 6]),
        (pl.Series([5, 6], dtype=pl.Int128), [5, 6]),
    ],
)
def test_time_stamps_that_are_rare_but_right(tmp_path: Path, column: pl.Series, stamps: list[int]) -> None:
    assert read(written(tmp_path, timestamp=column)).frame["timestamp"].to_list() == stamps


@pytest.mark.parametrize(
    "column",
    [
        [dt.time(1), dt.time(2)],
        [dt.timedelta(1), dt.timedelta(2)],
        [{"a": 1}, {"a": 2}],
        [[1], [2]],
        [b"1", b"2"],
        [True, False],
    ],
)
def test_types_that_are_no_time(tmp_path: Path, column: list[Any]) -> None:
    with pytest.raises(
        ConfedError, match=r"a\.parquet, row 1: time stamps of type \w+.* are neither numbers nor dates"
    ):
        read(written(tmp_path, timestamp=column))


@pytest.mark.parametrize("column", [[dt.date(2024, 5, 1)] * 2, [dt.timedelta(1)] * 2, [{"a": 1}] * 2, [b"1"] * 2])
def test_types_that_are_no_rating(tmp_path: Path, column: list[Any]) -> None:
    with pytest.raises(ConfedError, match=r"a\.parquet, row 1: ratings of type \w+.* are not numbers"):
        read(written(tmp_path, rating=column))


@pytest.mark.parametrize(
    "column",
    [[dt.date(2024, 5, 1)] * 2, [dt.datetime(2024, 5, 1)] * 2, [dt.timedelta(1)] * 2, [{"a": 1}] * 2, [[1]] * 2],
)
def test_types_that_are_no_id(tmp_path: Path, column: list[Any]) -> None:
    with pytest.raises(ConfedError, match=r"a\.parquet, row 1: item ids of type \w+.* cannot be used; make them text"):
        read(written(tmp_path, item=column))


def test_ids_of_many_bits_keep_their_digits(tmp_path: Path) -> None:
    column = pl.Series([2**100, 2**64 - 1], dtype=pl.Int128)
    assert read(written(tmp_path, user=column)).frame["user"].to_list() == [str(2**100), str(2**64 - 1)]


def test_titles_of_odd_types_are_left_out(tmp_path: Path) -> None:
    for column in ([b"\xff", b"x"], [dt.timedelta(1)] * 2, [[1], [2]]):
        assert read(written(tmp_path, item_title=column)).titles == {}


# --- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a[1].parquet", "a*.parquet", "a?.parquet", "user=3/a.parquet"])
def test_a_name_is_no_pattern(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    written(path.parent, "abc.parquet")
    written(path.parent, path.name)
    assert read(path).frame.rows() == [("a", "x", 1.0), ("b", "y", 1.0)]


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([["a"], ["x"], ["b"]], names=["user", "item", "user"]), path)
    with pytest.raises(ConfedError, match=r"a\.parquet: .*user"):
        read(path)


# --- what confed wrote ------------------------------------------------------------------------------------------

ABOUT = {"time": "none", "name": "mine", "pseudo_time": "file-order", "titles": {"x": "Ex"}}


def with_metadata(folder: Path, text: str) -> Path:
    path = folder / "a.parquet"
    pl.DataFrame({"user": ["a"], "item": ["x"]}).write_parquet(path, metadata={"confed": text})
    return path


def test_metadata_comes_back(tmp_path: Path) -> None:
    data = Interactions.of(with_metadata(tmp_path, json.dumps(ABOUT)))
    assert (data.name, data.titles) == ("mine", {"x": "Ex"})


@pytest.mark.parametrize(
    "told",
    [
        "",
        "{",
        "3",
        "[]",
        "{}",
        "null",
        "[" * 100_000,
        '"\\ud800"',
        *(
            json.dumps({**ABOUT, **change})
            for change in (
                {"time": "rael"},
                {"time": ["none"]},
                {"time": "real"},  # there are no stamps
                {"name": 3},
                {"name": "\ud800"},
                {"pseudo_time": None},
                {"titles": []},
                {"titles": {"x": 3}},
                {"titles": "x"},
            )
        ),
    ],
)
def test_damaged_metadata(tmp_path: Path, told: str) -> None:
    with pytest.raises(ConfedError, match=r"a\.parquet: what confed wrote beside the columns .* is damaged; import"):
        Interactions.of(with_metadata(tmp_path, told))


# --- sizes ------------------------------------------------------------------------------------------------------


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many equal rows and long texts take next to nothing in the file."""
    rows = pl.DataFrame({"user": ["a"] * 2_000_000, "item": ["x"] * 2_000_000})
    texts = pl.DataFrame({"user": ["a" * 10_000_000, "b" * 10_000_000], "item": ["x", "y"]})
    monkeypatch.setenv("CONFED_MAX_BYTES", "10000000")
    for frame in (rows, texts):
        path = tmp_path / "bomb.parquet"
        frame.write_parquet(path, compression="zstd")
        assert path.stat().st_size < 100_000
        with pytest.raises(ConfedError, match=r"bomb\.parquet would take \d.* MB, the limit is 10 MB"):
            read(path)


def test_columns_that_are_not_read_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, review=["a" * 10_000_000, "b" * 10_000_000])
    monkeypatch.setenv("CONFED_MAX_BYTES", "1000000")
    assert read(path).frame.height == 2


def test_too_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, **{f"c{number}": [0, 0] for number in range(50)})
    monkeypatch.setenv("CONFED_MAX_COLUMNS", "20")
    with pytest.raises(ConfedError, match=r"a\.parquet has so many columns: 52, the limit is 20"):
        read(path)


@pytest.mark.parametrize("end", [b"", b"PAR1", b"\xff\xff\xff\xffPAR1", b"\0\0\0\0PAR1", b"\x08\0\0\0PAR1", b"PARE"])
def test_damaged_ends(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + bytes(range(256)) + end)
    with pytest.raises(ConfedError, match=r"a\.parquet: not a readable Parquet file \(.*\); write it again"):
        read(path)
