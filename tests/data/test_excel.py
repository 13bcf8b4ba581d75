"""Excel: the first sheet of a workbook."""

from __future__ import annotations

import datetime as dt
import sys
import zipfile
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


# --- what Excel would not write ---------------------------------------------------------------------------------


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [("user", None, "item", "user"), (1, 0, 2, 3)], down=2)
    for told in ({}, {"user": "user"}):
        with pytest.raises(ConfedError, match=r"a\.xlsx: columns 1 and 4 are both called 'user'; rename one of them"):
            read(path, **told)
    notes = workbook(tmp_path / "b.xlsx", [("user", "note", "item", "note", "item_1"), (1, 0, 2, 0, 0)])
    assert read(notes).frame.rows() == [("1", "2", 1.0)]


def test_a_cell_far_out_makes_no_large_sheet(tmp_path: Path) -> None:
    """fastexcel would ask for half a terabyte and take the whole process with it."""
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        for row, values in enumerate([("user", "item"), (1, 2)]):
            sheet.write_row(row, 0, values)
        sheet.write(1_048_575, 16_383, "far out")
    with pytest.raises(
        ConfedError, match=r"a\.xlsx would take, with 1,048,576 rows and 16,384 columns, 549.8 GB, the limit is"
    ):
        read(tmp_path / "a.xlsx")


def rewritten(path: Path, change: dict[str, bytes]) -> Path:
    """A workbook some of whose parts are others."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()} | change
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            book.writestr(name, content)
    return path


def test_rows_that_say_where_they_are(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", GOOD)
    cells = b"".join(b"<c r='A%d'><v>1</v></c>" % number for number in (1, 2))
    wide = b'<row r="1000000"><c r="XFD2"><v>1</v></c></row>'
    sheet = b'<?xml version="1.0"?><worksheet><sheetData><row r="1">%b</row>%b</sheetData></worksheet>' % (cells, wide)
    with pytest.raises(ConfedError, match=r"a\.xlsx would take, with 1,000,000 rows and 16,384 columns"):
        read(rewritten(path, {"xl/worksheets/sheet1.xml": sheet}))


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rewritten(workbook(tmp_path / "a.xlsx", GOOD), {"xl/media/image1.png": bytes(20_000_000)})
    assert path.stat().st_size < 100_000
    assert read(path).frame.rows() == ROWS
    monkeypatch.setenv("CONFED_MAX_BYTES", "10000000")
    with pytest.raises(ConfedError, match=r"a\.xlsx would take 20\.\d+ MB, the limit is 10 MB"):
        read(path)


def test_an_archive_that_lies_about_its_size(tmp_path: Path) -> None:
    path = rewritten(workbook(tmp_path / "a.xlsx", GOOD), {"xl/media/image1.png": bytes(20_000_000)})
    data = path.read_bytes()
    path.write_bytes(data.replace((20_000_000).to_bytes(4, "little"), (200).to_bytes(4, "little")))
    with pytest.raises(ConfedError, match=r"a\.xlsx: not a readable Excel file \(.*\); save it again"):
        read(path)


def test_archives_that_are_no_workbook(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("content.xml", "<x/>")
    with pytest.raises(ConfedError, match=r"a\.xlsx: not a readable Excel file \(it is no \.xlsx workbook\)"):
        read(tmp_path / "a.xlsx")


def test_too_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFED_MAX_COLUMNS", "2")
    with pytest.raises(ConfedError, match=r"a\.xlsx has so many columns: 3, the limit is 2"):
        read(workbook(tmp_path / "a.xlsx", GOOD))


def test_cells_that_do_not_say_where_they_are(tmp_path: Path) -> None:
    """They follow each other; a million rows of a thousand cells take the room of all."""
    path = workbook(tmp_path / "a.xlsx", GOOD)
    narrow = b"".join(b"<row><c><v>%d</v></c><c><v>2</v></c></row>" % number for number in range(1_000))
    wide = b'<x:row r = "1000000">%b</x:row>' % (b"<x:c><v>1</v></x:c>" * 16_000)
    sheet = b'<?xml version="1.0"?><worksheet><sheetData>%b</sheetData></worksheet>'
    with pytest.raises(ConfedError, match=r"a\.xlsx would take, with 1,000,000 rows and 16,000 columns"):
        read(rewritten(path, {"xl/worksheets/sheet1.xml": sheet % wide}))
    with pytest.raises(ConfedError, match=r"a\.xlsx: no column looks like the user id"):
        read(rewritten(path, {"xl/worksheets/sheet1.xml": sheet % narrow}))


def test_a_workbook_without_sheets(tmp_path: Path) -> None:
    """Found by the harness of faults: polars looks for the first of none."""
    path = workbook(tmp_path / "a.xlsx", GOOD)
    book = b'<?xml version="1.0"?><workbook><sheets/></workbook>'
    with pytest.raises(ConfedError, match=r"a\.xlsx: not a readable Excel file \(.*\); save it again, or as CSV"):
        read(rewritten(path, {"xl/workbook.xml": book}))
