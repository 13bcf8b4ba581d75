"""Excel: the first sheet of a workbook. Needs the extra `excel`."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from confed.data.boundary import reason
from confed.data.columns import places_by_name, places_by_number
from confed.data.contents import content
from confed.data.dates import DateOrder
from confed.data.limits import BYTES, COLUMNS
from confed.data.values import Table, from_frame, typed
from confed.errors import ConfedError

_CELL = re.compile(rb"""<(?:\w+:)?c\b[^<>]*?\br\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["'][^<>]*(?<!/)>""")
_ROW = re.compile(rb"""<(?:\w+:)?row\b[^<>]*?\br\s*=\s*["'](\d{1,7})["']""")
_NEXT_CELL = re.compile(rb"""<(?:\w+:)?c\b(?![^<>]*\br\s*=)[^<>]*(?<!/)>""")
"""A cell that does not say where it is, but follows another."""
_CELL_SIZE = 32  # bytes that fastexcel takes for a cell, blank ones between filled ones too
_CHUNK = 1 << 20


def read_excel(path: Path, given: Mapping[str, str], date_order: DateOrder | None, *, header: bool | None) -> Table:
    """Its first row names the columns, unless `header` is False; blank rows do not count."""
    headed = header is not False
    data = content(path)
    sheet = _sheet(path, data, has_header=headed, infer_schema_length=None)
    COLUMNS.require(sheet.width, f"{path} has so many columns:")
    filled = _filled(sheet)

    def as_it_stands(**options: Any) -> pl.DataFrame:
        return _sheet(path, data, has_header=False, infer_schema_length=0, **options)

    def where(row: int) -> str:
        """As Excel counts: `sheet` begins with the first row that is not blank."""
        return f"{path}, row {_filled(as_it_stands(read_options={'skip_rows': 0}))[0] + headed + filled[row] + 1}"

    frame = sheet[filled]
    if headed and _renamed(frame.columns):
        written = [name or f"unnamed {place}" for place, name in enumerate(as_it_stands().row(0))]
        places_by_name(written, given, str(path))
    if headed or not frame.height:
        return from_frame(frame, given, date_order, str(path), where)
    names = [str(number + 1) for number in range(frame.width)]
    places = places_by_number(names, given, str(path))
    columns = {role: frame.to_series(place).alias(names[place]) for role, place in places.items()}
    return typed(columns, names, where, date_order)


def _renamed(names: list[str]) -> bool:
    """Whether a second `user` may have become `user_1`, as fastexcel has it."""
    return any(re.sub(r"_\d+$", "", name) in names for name in names if re.search(r"_\d+$", name))


def _sheet(path: Path, data: bytes, **options: Any) -> pl.DataFrame:
    try:
        from fastexcel import FastExcelError  # noqa: PLC0415 - an extra that not everybody has
    except ImportError:
        raise ConfedError(f"{path}: Excel files need fastexcel: pip install 'confed[excel]'") from None
    try:
        _require_modest(path, data)
        sheet: pl.DataFrame = pl.read_excel(
            data, drop_empty_rows=False, drop_empty_cols=False, raise_if_empty=False, **options
        )
        return sheet
    except (FastExcelError, pl.exceptions.PolarsError, LookupError, *_DAMAGED) as error:
        raise ConfedError(f"{path}: not a readable Excel file ({reason(error)}); save it again, or as CSV") from error


def _filled(sheet: pl.DataFrame) -> pl.Series:
    """The numbers of the rows that hold something."""
    if not sheet.width:
        return pl.Series(dtype=pl.UInt32)
    return sheet.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()


# --- size -------------------------------------------------------------------------------------------------------

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
"""What zipfile raises; a RuntimeError of archives that are encrypted or packed in a way it does not know."""


def _require_modest(path: Path, data: bytes) -> None:
    """Raise if the workbook would not fit: what is packed unpacks to more, and one cell far out makes a large sheet."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        if "xl/workbook.xml" not in book.namelist():
            raise ValueError("it is no .xlsx workbook")
        BYTES.require(sum(member.file_size for member in book.infolist()), f"{path} would take")
        for member in book.infolist():
            rows, columns = _extent(_tags(book, member))
            BYTES.require(
                rows * columns * _CELL_SIZE, f"{path} would take, with {rows:,} rows and {columns:,} columns,"
            )


def _tags(book: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a member holds, in pieces that do not cut a tag; zipfile checks its size and sum."""
    with book.open(member) as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            head, mark, tail = chunk.rpartition(b"<")
            if mark:
                yield rest + head
            rest = mark + tail if mark else rest + tail
        yield rest


def _extent(pieces: Iterator[bytes]) -> tuple[int, int]:
    """The last row and the last column of a sheet that hold something."""
    last = widest = here = 0
    names = set[bytes]()
    for piece in pieces:
        cells = _CELL.findall(piece)
        names.update(column for column, _ in cells)
        last = max([last, *(int(row) for _, row in cells), *map(int, _ROW.findall(piece))])
        if _NEXT_CELL.search(piece):
            for number, row in enumerate(re.split(rb"<(?:\w+:)?row\b", piece)):
                here = (0 if number else here) + len(_NEXT_CELL.findall(row))
                widest = max(widest, here)
    return last, max([widest, *map(_number, names)])


def _number(column: bytes) -> int:
    """A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in column.upper():
        number = number * 26 + letter - ord("A") + 1
    return number
