"""Excel: the first sheet of a workbook."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter

from confed.data.interactions import Interactions
from confed.data.readers import read
from confed.errors import ConfedError

APRIL = dt.datetime(2024, 4, 3)
HEADER = ("customer", "product", "when")
GOOD = (HEADER, (7, "x", APRIL), (8, "y", APRIL + dt.timedelta(seconds=1)))
ROWS = [("7", "x", 1.0, 1_712_102_400), ("8", "y", 1.0, 1_712_102_401)]


def workbook(path: Path, rows: Sequence[Sequence[object]], *, down: int = 0, right: int = 0) -> Path:
    """Two sheets, the first of which has these rows."""
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        sheet = book.add_worksheet()
        for row, values in enumerate(rows):
            for column, value in enumerate(values):
                sheet.write(down + row, right + column, value)
        book.add_worksheet().write(0, 0, "something else")
    return path


def test_the_first_sheet_is_read(tmp_path: Path) -> None:
    path = workbook(tmp_path / "orders.xlsx", GOOD)
    assert read(path).frame.rows() == ROWS
    assert read(path, user="product", item="customer").frame.rows()[0][:2] == ("x", "7")
    assert read(path.rename(tmp_path / "orders.csv")).frame.rows() == ROWS, "whatever it is called"
    assert read((tmp_path / "orders.csv").rename(tmp_path / "orders.bin"), format="excel").frame.rows() == ROWS


def test_blank_rows_and_columns_do_not_count(tmp_path: Path) -> None:
    rows = [HEADER, (), *GOOD[1:2], (), (), *GOOD[2:], ()]
    assert read(workbook(tmp_path / "a.xlsx", rows, down=3, right=2)).frame.rows() == ROWS


def test_without_header_columns_are_numbers(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", GOOD[1:])
    table = read(path, header=False, timestamp="3")
    assert table.frame.rows() == ROWS and table.columns["timestamp"] == "3"


def test_dates_as_text(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [HEADER, (7, "x", "03.04.2024"), (8, "y", "13.4.2024 10:00")])
    assert read(path).frame["timestamp"].to_list() == [1_712_102_400, 1_713_002_400]


@pytest.mark.parametrize("down", [0, 3])
@pytest.mark.parametrize(
    ("bad", "message"),
    [((None, "z", APRIL), "the user id is empty"), ((9, "z", "soon"), "the time stamp is 'soon', not a date")],
)
def test_the_row_of_a_fault_is_named_as_excel_counts(
    tmp_path: Path, down: int, bad: tuple[object, ...], message: str
) -> None:
    path = workbook(tmp_path / "a.xlsx", [*GOOD, (), bad], down=down)
    with pytest.raises(ConfedError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, row {down + 5}: {message}")


def test_faults_of_the_whole(tmp_path: Path) -> None:
    with pytest.raises(ConfedError, match=r"a\.xlsx: no column looks like the user id; its columns are who, item"):
        read(workbook(tmp_path / "a.xlsx", [("who", "item"), (1, 2)]))
    for rows in ([], [HEADER]):
        with pytest.raises(ConfedError, match=r"a\.xlsx has no rows"):
            read(workbook(tmp_path / "a.xlsx", rows))
    with pytest.raises(ConfedError, match=r"nowhere\.xlsx: no such file"):
        read(tmp_path / "nowhere.xlsx")
    (tmp_path / "b.xlsx").write_text("user,item\n1,2\n")
    with pytest.raises(ConfedError, match=r"b\.xlsx: not a readable Excel file \(.*\); save it again, or as CSV"):
        read(tmp_path / "b.xlsx")


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "a.xlsx", GOOD)
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ConfedError, match=r"a\.xlsx: Excel files need fastexcel: pip install 'confed\[excel\]'"):
        read(path)


def test_the_content_is_that_of_any_other_format(tmp_path: Path) -> None:
    rows = [(7, "ä,b", 3.5, 10), (12, "c", 0.1, 5), (7, "1", 4, 1_712_102_400)]
    names = ("user", "item", "rating", "timestamp")
    pl.DataFrame(rows, schema=names, orient="row", strict=False).write_csv(tmp_path / "a.csv")
    as_excel = Interactions.of(workbook(tmp_path / "a.xlsx", [names, *rows]))
    assert as_excel.content_hash == Interactions.of(tmp_path / "a.csv").content_hash
