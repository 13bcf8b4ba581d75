"""What values mean: time stamps of every kind, and titles of items."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from confed.data.interactions import Interactions
from confed.data.values import Table, from_frame
from confed.errors import ConfedError, in_python


def table(**columns: list[object]) -> Table:
    rows = len(next(iter(columns.values())))
    ids = {"user": [str(row) for row in range(rows)], "item": ["x"] * rows}
    return from_frame(pl.DataFrame({**ids, **columns}), {})


def stamps(*values: object) -> list[int]:
    return table(timestamp=list(values)).frame["timestamp"].to_list()


def test_whole_numbers_stay_as_they_are_days_of_eight_digits_too() -> None:
    assert stamps("20240403", "20231231") == [20_240_403, 20_231_231]
    assert stamps(20_240_403) == [20_240_403]
    assert stamps("1.5", "2") == [1_500_000, 2_000_000]


def test_dates_are_seconds_and_with_fractions_microseconds() -> None:
    assert stamps("03.04.2024", "13.4.2024 00:00:01") == [1_712_102_400, 1_712_966_401]
    assert stamps("1970-01-01 00:00:01", "1970-01-01 00:00:01.5") == [1_000_000, 1_500_000]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["2024-04-03", "noon"], "row 2: the time stamp is 'noon', not a date such as 2024-05-01"),
        (["2024-04-03", "1712102400"], "row 2: the time stamp is '1712102400', not a date"),
        (["2024-04-03", ""], "row 2: the time stamp is empty, not a date"),
        (["1712102400", "noon"], "row 2: the time stamp is 'noon', neither a number nor a date such as"),
        ([1, None], "row 2: the time stamp is empty"),
    ],
)
def test_a_column_is_dates_or_numbers(values: list[object], message: str) -> None:
    with pytest.raises(ConfedError, match=message):
        stamps(*values)


def test_notes_say_how_dates_were_read() -> None:
    assert table(timestamp=["2024-04-03"]).notes == ()
    (note,) = table(timestamp=["03/04/2024"]).notes
    assert note.startswith("the data frame, row 1: '03/04/2024' is read as 2024-03-04, with the month first")


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["Ink", "Ink"], {"title": "name", "ignored": ["price"]}),
        (["Ada", "Ben"], {"title": None, "ignored": ["price", "name"]}),
    ],
)
def test_a_table_says_which_columns_it_is(names: list[object], taken: dict[str, object]) -> None:
    """A bare name that turns out to be somebody else's is no title."""
    found = table(price=[1, 2], name=names).columns
    assert found == {"user": "user", "item": "item", "rating": None, "timestamp": None, **taken}


def test_notes_are_heard_once(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame({"user": ["a"], "item": ["x"], "when": ["07/09/2024"]})
    heard: list[str] = []
    Interactions.of(frame, notice=heard.append)
    Interactions.of(frame, notice=heard.append)
    assert len(heard) == 2 and heard[0].startswith("notice: the data frame, row 1: '07/09/2024' is read as 2024-07-09")
    assert capsys.readouterr().err == ""
    for _ in range(2):
        Interactions.of(frame)
    assert capsys.readouterr().err == in_python(heard[0]) + "\n"
    assert Interactions.of(frame, date_order="dmy").frame["timestamp"].to_list() == [1_725_667_200]
    assert capsys.readouterr().err == ""


# --- titles -----------------------------------------------------------------------------------------------------


def titles(header: str, *rows: tuple[object, ...]) -> dict[str, str]:
    frame = pl.DataFrame(rows, schema=header.split(","), orient="row")
    data = Interactions.of(frame)
    assert data.content_hash == Interactions.of(frame.select(frame.columns[:2])).content_hash
    return dict(data.titles)


def test_titles_are_the_first_that_an_item_has_and_not_part_of_the_content() -> None:
    rows = [("a", 1, None), ("b", 1, " Cup "), ("c", 1, "Mug"), ("a", 2, ""), ("b", 3, "Pot")]
    assert titles("customer,product_id,product_name", *rows) == {"1": "Cup", "3": "Pot"}


@pytest.mark.parametrize(("bare", "other"), [("title", "name"), ("name", "note")])
def test_a_bare_title_counts_if_it_is_the_items(bare: str, other: str) -> None:
    items = [
        ("a", 1, "Cup", "A"),
        ("b", 1, "Cup", "B"),
        ("a", 2, "Pot", "A"),
        ("b", 2, "Jug", "B"),
        ("c", 3, "Tub", "C"),
    ]
    assert titles(f"user,item,{bare},{other}", *items) == {"1": "Cup", "2": "Pot", "3": "Tub"}
    people = [("a", 1, "Ann"), ("b", 1, "Bob"), ("a", 2, "Ann"), ("b", 2, "Bob"), ("c", 3, "Cem")]
    assert titles(f"user,item,{bare}", *people) == {}
    assert titles(f"user,item,{bare}", ("a", 1, "Ann"), ("b", 2, "Bob")) == {}, "nobody can tell"


def test_titles_that_are_no_text() -> None:
    assert titles("user,book_id,book_title", ("a", 1, 1984)) == {"1": "1984"}
    assert titles("user,book_id,book_title", ("a", 1, ["1984"])) == {}


# --- ids --------------------------------------------------------------------------------------------------------


def ids(values: list[object], kind: pl.DataType | None = None) -> list[str]:
    column = pl.Series("user", values, dtype=kind)
    return from_frame(pl.DataFrame({"user": column, "item": ["x"] * len(values)}), {}).frame["user"].to_list()


def test_whole_numbers_that_became_floats_are_whole_numbers() -> None:
    assert ids([1.0, 2.0, 9_007_199_254_740_991.0]) == ["1", "2", "9007199254740991"]
    assert ids([1.0, -0.0, 1.5]) == ["1", "0", "1.5"]
    assert ids([1, 2], pl.Float32()) == ["1", "2"]
    assert ids([Decimal("1.00"), Decimal("2.50")]) == ["1", "2.50"]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_id_is_nobody_and_leaves_others_as_they_are(missing: float | None) -> None:
    with pytest.raises(ConfedError, match=r"the data frame, row 2: the user id is empty; fill it in or remove the row"):
        ids([1.0, missing, 3.0])
    pandas_frame = pd.DataFrame({"user": [1, missing, "b"], "item": ["x", "y", "z"]}, dtype=object)
    with pytest.raises(ConfedError, match=r"the data frame, row 2: the user id is empty"):
        Interactions.of(pandas_frame)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (9.3e18, pl.Float64()),
        (2.0**53, pl.Float64()),
        (-1e300, pl.Float64()),
        (float("inf"), pl.Float64()),
        (2**24, pl.Float32()),
    ],
)
def test_floats_that_may_have_lost_digits_are_no_ids(value: float, kind: pl.DataType) -> None:
    """Two long numbers may have become one and the same."""
    with pytest.raises(
        ConfedError, match=r"row 2: the user id is .* may have lost digits; make the column whole numbers"
    ):
        ids([1.0, value], kind)


def test_bytes_are_ids_if_they_are_text() -> None:
    assert ids([b"a", "é".encode()]) == ["a", "é"]
    with pytest.raises(ConfedError, match=r"row 2: the user id is b'\\xff', which is not text"):
        ids([b"a", b"\xff"])


def test_values_of_several_types_in_a_pandas_column() -> None:
    frame = pd.DataFrame({"user": [1, "b"], "item": ["x", "y"]}, dtype=object)
    assert Interactions.of(frame).users == ["1", "b"]


@pytest.mark.parametrize("value", [object(), 1j])
def test_frames_of_what_is_no_value(value: object) -> None:
    with pytest.raises(ConfedError, match=r"the data frame.*user ids of type Object cannot be used"):
        Interactions.of(pd.DataFrame({"user": [value], "item": ["x"]}))


def test_what_polars_cannot_take_is_an_error_of_the_frame() -> None:
    decimals = pa.array([1], pa.decimal256(60))
    with pytest.raises(ConfedError, match=r"^the data frame: not a readable frame \(.*\); make its columns"):
        Interactions.of(pa.table({"user": decimals, "item": [1]}))
    with pytest.raises(ConfedError, match=r"^the data frame: not a readable frame"):
        Interactions.of(pl.LazyFrame({"user": [1]}).select("item"))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3]], columns=["user", "item", "user"]),
        pa.table([[1], [2], [3]], names=["user", "item", "user"]),
    ],
)
def test_two_columns_of_one_name(frame: object) -> None:
    with pytest.raises(ConfedError, match="the data frame: columns 1 and 3 are both called 'user'; rename one of them"):
        Interactions.of(frame)
