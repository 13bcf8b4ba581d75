"""Untyped columns to typed ones: what the values mean.

Shared by files and frames, which differ only in how they say where a bad value stands. Ids become text, ratings finite
floats, time stamps integers. Whole numbers stay as they are, 20240403 too: such days are in the same order as numbers.
Dates become seconds since 1970, or microseconds where a column has fractions of a second, so that no order is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from confed.data.catalogue import PseudoTime, Time
from confed.data.columns import ROLES, Columns, Where, columns_taken, places_by_name, require_roles
from confed.data.dates import DateOrder, first_true, read_dates, require_order
from confed.errors import ConfedError

_TOO_LATE = 2**63 - 1  # microseconds, or whatever a column counts


@dataclass(frozen=True)
class Table:
    """What a file or frame holds, typed, rows in their original order."""

    frame: pl.DataFrame
    """Columns user, item, rating, and timestamp only if the source has one."""
    time: Time
    name: str | None = None
    pseudo_time: PseudoTime | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    """Which columns of the source these are; nothing of a file of ours, whose columns have our names."""
    notes: tuple[str, ...] = ()
    """What the user should know about how it was read."""


def from_frame(
    frame: pl.DataFrame,
    columns: Mapping[str, str],
    date_order: DateOrder | None = None,
    label: str = "the data frame",
    where: Where | None = None,
) -> Table:
    """The interactions in a polars frame; `columns` maps our names (user, item, ...) to the frame's."""
    require_roles(columns)
    if frame.height == 0:
        raise ConfedError(f"{label} has no rows: there is nothing to read")
    places = places_by_name(frame.columns, columns, label)
    found = {role: frame.to_series(place) for role, place in places.items()}
    return typed(found, frame.columns, where or (lambda row: f"{label}, row {row + 1}"), date_order)


def typed(
    columns: Mapping[str, pl.Series], names: Sequence[str], where: Where, date_order: DateOrder | None = None
) -> Table:
    """Columns by role to a table; a missing rating counts as 1. `names` are those of all columns of the source."""
    require_order(date_order)
    values = {"user": _ids(columns["user"], "user", where), "item": _ids(columns["item"], "item", where)}
    if "rating" in columns:
        values["rating"] = _ratings(columns["rating"], where)
    else:
        values["rating"] = pl.repeat(1.0, len(values["user"]), eager=True)
    used, notes = {role: columns[role].name for role in ROLES if role in columns}, list[str]()
    titled = columns.get("title", columns.get("name"))
    titles = {} if titled is None else _titles(values["item"], titled, sure="title" in columns)
    if titled is not None and titles:
        used["title"] = titled.name
    if "timestamp" in columns:
        values["timestamp"], notes = _stamps(columns["timestamp"], date_order, where)
    return Table(
        pl.DataFrame(values),
        "real" if "timestamp" in columns else "none",
        titles=titles,
        columns=columns_taken(used, names),
        notes=tuple(notes),
    )


# --- ids and titles ---------------------------------------------------------------------------------------------


def _ids(column: pl.Series, role: str, where: Where) -> pl.Series:
    kind = column.dtype
    if kind.is_float():
        ids = _whole_numbers(column, role, where)
    elif kind == pl.Binary:
        ids = pl.Series([_decoded(one) for one in column], dtype=pl.String)
    elif _is_plain(kind):
        ids = column.cast(pl.String)
    else:
        raise ConfedError(f"{where(0)}: {role} ids of type {kind} cannot be used; make them text")
    bad = first_true(ids.is_null() | (ids.str.strip_chars() == ""))
    if bad is not None:
        what = f"{column[bad][:20]!r}, which is not text" if kind == pl.Binary and column[bad] else "empty"
        raise ConfedError(f"{where(bad)}: the {role} id is {what}; fill it in or remove the row")
    return ids.str.replace(r"\.0+$", "") if kind.is_decimal() else ids


def _decoded(value: bytes | None) -> str | None:
    """Bytes as the text that they are: not every writer of Parquet says so."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _is_plain(kind: pl.DataType) -> bool:
    """Whether values of this type can be written as text and read again."""
    return kind.is_numeric() or kind in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)


def _whole_numbers(column: pl.Series, role: str, where: Where) -> pl.Series:
    """1.0 is the id 1: pandas turns integers into floats where some are missing. NaN is a missing id."""
    bits = 24 if column.dtype == pl.Float32 else 53
    exact = (column.abs() < 2.0**bits).fill_null(True) | column.is_nan().fill_null(True)
    bad = first_true(~exact)
    if bad is not None:
        raise ConfedError(
            f"{where(bad)}: the {role} id is {column[bad]!r}, a floating-point number that may have lost digits; make "
            "the column whole numbers or text"
        )
    whole = column.cast(pl.Int64, strict=False)
    ids = pl.when(column == column.round()).then(whole.cast(pl.String)).otherwise(column.cast(pl.String))
    return pl.select(pl.when(column.is_not_nan()).then(ids)).to_series()


def _titles(items: pl.Series, column: pl.Series, *, sure: bool) -> dict[str, str]:
    """By item the first title that its rows have; unless it is sure, if it is the items' and nobody else's."""
    if not _is_plain(column.dtype):
        return {}
    said = pl.DataFrame({"item": items, "title": column.cast(pl.String).str.strip_chars()})
    said = said.filter(pl.col("title") != "")
    if not sure:
        count = said.group_by("item").agg(rows=pl.len(), titles=pl.col("title").n_unique())
        one = count.filter(pl.col("rows") > 1)["titles"] == 1
        if 2 * one.sum() < max(len(one), 1):
            return {}  # of most items every row says something else: it is the name of the user, or of a review
    return dict(said.unique("item", keep="first", maintain_order=True).iter_rows())


# --- numbers ----------------------------------------------------------------------------------------------------


def _numbers(column: pl.Series, what: str, where: Where) -> pl.Series:
    """As floats, null where a text is no number."""
    if not _is_plain(column.dtype):
        raise ConfedError(f"{where(0)}: {what} of type {column.dtype} are not numbers; make them numbers")
    numbers = column.cast(pl.Float64, strict=False)
    if column.dtype == pl.String and numbers.null_count():
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    return numbers


def _uncoded(column: pl.Series) -> pl.Series:
    """Categories as the texts that they are."""
    return column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column


def _ratings(column: pl.Series, where: Where) -> pl.Series:
    column = _uncoded(column)
    numbers = _numbers(column, "ratings", where)
    bad = first_true(~numbers.is_finite().fill_null(False))
    if bad is not None:
        raise ConfedError(
            f"{where(bad)}: the rating is {_shown(column[bad])}, not a finite number; mend it, or name another column "
            "with --rating-column"
        )
    return numbers


def _stamps(column: pl.Series, order: DateOrder | None, where: Where) -> tuple[pl.Series, list[str]]:
    """As integers, with notes on how dates were read."""
    column = _uncoded(column)
    if column.dtype in (pl.Date, pl.Datetime):
        return _seconds(_micros(column, where), column, where), []
    if column.dtype == pl.Boolean or not _is_plain(column.dtype):
        raise ConfedError(f"{where(0)}: time stamps of type {column.dtype} are neither numbers nor dates")
    if column.dtype == pl.String or column.dtype.is_integer():
        whole = column.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole, []
    numbers = _numbers(column, "time stamps", where)
    finite = numbers.is_finite().fill_null(False)
    if column.dtype == pl.String and not finite.all():
        micros, notes = read_dates(column, order, where)
        if micros.null_count() < len(micros):
            return _seconds(micros, column, where), notes
    _require(finite, column, where, "neither a number nor a date")
    if not bool((numbers == numbers.round()).all()):
        numbers = (numbers * 1e6).round()
    bad = first_true(numbers.abs() >= float(_TOO_LATE))
    if bad is not None:
        raise _too_late(f"{where(bad)}: the time stamp is {_shown(column[bad])}")
    return numbers.cast(pl.Int64), []


def _micros(column: pl.Series, where: Where) -> pl.Series:
    """Microseconds since 1970 of dates and moments; null where there is none."""
    unit = getattr(column.dtype, "time_unit", None) or "days"
    passed = column.to_physical().cast(pl.Int64)
    if unit == "ns":
        return passed // 1000
    factor = {"days": 86_400_000_000, "ms": 1000, "us": 1}[unit]
    most = _TOO_LATE // factor
    bad = first_true(~passed.is_between(-most, most).fill_null(True))
    if bad is not None:
        raise _too_late(f"{where(bad)}: the time stamp is {passed[bad]} {unit} from 1970")
    return passed * factor


def _too_late(what: str) -> ConfedError:
    return ConfedError(
        f"{what}, which does not fit into 64 bits; mend or remove the row, or name another column with "
        "--timestamp-column"
    )


def _seconds(micros: pl.Series, column: pl.Series, where: Where) -> pl.Series:
    """Whole seconds if all are, else microseconds."""
    _require(micros.is_not_null(), column, where, "not a date")
    return micros // 1_000_000 if bool((micros % 1_000_000 == 0).all()) else micros


def _require(usable: pl.Series, column: pl.Series, where: Where, found: str) -> None:
    bad = first_true(~usable)
    if bad is not None:
        raise ConfedError(
            f"{where(bad)}: the time stamp is {_shown(column[bad])}, {found} such as 2024-05-01 10:00:00, 1.5.2024 or "
            "May 1, 2024"
        )


def _shown(value: object) -> str:
    return "empty" if value is None or value == "" else repr(value)
