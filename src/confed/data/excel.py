"""Excel: the first sheet of a workbook. Needs the extra `excel`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from confed.data.columns import places_by_number
from confed.data.contents import content
from confed.data.dates import DateOrder
from confed.data.values import Table, from_frame, typed
from confed.errors import ConfedError


def read_excel(path: Path, given: Mapping[str, str], date_order: DateOrder | None, *, header: bool | None) -> Table:
    """Its first row names the columns, unless `header` is False; blank rows do not count."""
    headed = header is not False
    data = content(path)
    sheet = _sheet(path, data, has_header=headed, infer_schema_length=None)
    filled = _filled(sheet)

    def where(row: int) -> str:
        """As Excel counts: `sheet` begins with the first row that is not blank."""
        whole = _sheet(path, data, has_header=False, infer_schema_length=0, read_options={"skip_rows": 0})
        return f"{path}, row {_filled(whole)[0] + headed + filled[row] + 1}"

    frame = sheet[filled]
    if headed or not frame.height:
        return from_frame(frame, given, date_order, str(path), where)
    names = [str(number + 1) for number in range(frame.width)]
    places = places_by_number(names, given, str(path))
    columns = {role: frame.to_series(place).alias(names[place]) for role, place in places.items()}
    return typed(columns, names, where, date_order)


def _sheet(path: Path, data: bytes, **options: Any) -> pl.DataFrame:
    try:
        from fastexcel import FastExcelError  # noqa: PLC0415 - an extra that not everybody has
    except ImportError:
        raise ConfedError(f"{path}: Excel files need fastexcel: pip install 'confed[excel]'") from None
    try:
        sheet: pl.DataFrame = pl.read_excel(
            data, drop_empty_rows=False, drop_empty_cols=False, raise_if_empty=False, **options
        )
        return sheet
    except (FastExcelError, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfedError(f"{path}: not a readable Excel file ({reason}); save it again, or as CSV") from error


def _filled(sheet: pl.DataFrame) -> pl.Series:
    """The numbers of the rows that hold something."""
    if not sheet.width:
        return pl.Series(dtype=pl.UInt32)
    return sheet.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
