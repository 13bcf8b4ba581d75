"""Untyped columns to typed ones: which column is the user, and what its values mean.

Shared by files and frames, which differ only in how they say where a bad value stands. Ids become text,
ratings finite floats, time stamps integers. Whole numbers stay as they are; dates and ISO 8601 text become
seconds since 1970, or microseconds where a column has fractions of a second, so that no order is lost.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from confed.data.catalogue import PseudoTime, Time
from confed.errors import ConfedError, unknown_name

Where = Callable[[int], str]
"""Says where row n (from 0) stands, for an error message."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ROLES = ("user", "item", "rating", "timestamp")

_USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "user": ("user", "userid", "uid", "useridx", "customerid", "visitorid", "memberid", "reviewerid"),
    "item": (
        *("item", "itemid", "iid", "itemidx", "movieid", "mid", "artistid", "productid", "bookid", "trackid"),
        *("songid", "articleid", "videoid", "businessid", "asin", "isbn"),
    ),
    "rating": ("rating", "ratings", "score", "stars", "overall", "weight"),
    "timestamp": ("timestamp", "time", "ts", "datetime", "date", "unixreviewtime", "eventtime", "createdat"),
}


@dataclass(frozen=True)
class Table:
    """What a file or frame holds, typed, rows in their original order."""

    frame: pl.DataFrame
    """Columns user, item, rating, and timestamp only if the source has one."""
    time: Time
    name: str | None = None
    pseudo_time: PseudoTime | None = None
    titles: Mapping[str, str] = field(default_factory=dict)


def from_frame(frame: pl.DataFrame, columns: Mapping[str, str] | None = None, label: str = "the data frame") -> Table:
    """The interactions in a polars frame; `columns` maps our names (user, item, ...) to the frame's."""
    require_roles(columns or {})
    if frame.height == 0:
        raise ConfedError(f"{label} has no rows: there is nothing to read")
    places = places_by_name(frame.columns, columns or {}, label)
    return typed(
        {role: frame.to_series(place) for role, place in places.items()},
        lambda row: f"{label}, row {row + 1}",
    )


# --- roles ------------------------------------------------------------------------------------------------


def require_roles(columns: Iterable[str]) -> None:
    for role in columns:
        if role not in ROLES:
            raise unknown_name("column role", role, ROLES)


def plain_name(name: str) -> str:
    """user_id:token, userId and "User ID" all become userid."""
    return re.sub(r"[^a-z0-9]", "", name.partition(":")[0].lower())


def is_usual(role: str, name: str) -> bool:
    return plain_name(name) in _USUAL_NAMES[role]


def places_by_name(names: Sequence[str], given: Mapping[str, str], label: str) -> dict[str, int]:
    """Which column plays which role: the one that was named, else the one with the most usual name."""
    for role, name in given.items():
        if name not in names:
            raise _missing(role, names, label, f"there is no column {name!r}")
    places = {role: list(names).index(name) for role, name in given.items()}
    plain = [plain_name(name) for name in names]
    for role in ROLES:
        usual = [plain.index(name) for name in _USUAL_NAMES[role] if name in plain]
        free = [place for place in usual if place not in places.values()]
        if role not in places and free:
            places[role] = free[0]
    return _complete(places, names, label)


def places_by_number(names: Sequence[str], given: Mapping[str, str], label: str) -> dict[str, int]:
    """The same for a file without header: columns are called 1, 2, 3, ... in the order of `ROLES`."""
    for role, name in given.items():
        if name not in names:
            raise _missing(role, names, label, f"there is no header, so columns are numbers; {name!r} is none")
    places = {role: int(name) - 1 for role, name in given.items()}
    for place, role in enumerate(ROLES[: len(names)]):
        if role not in places and place not in places.values():
            places[role] = place
    return _complete(places, names, label)


def _complete(places: dict[str, int], names: Sequence[str], label: str) -> dict[str, int]:
    for role in ("user", "item"):
        if role not in places:
            raise _missing(role, names, label, f"no column looks like the {role} id")
    return {role: places[role] for role in ROLES if role in places}


def _missing(role: str, names: Sequence[str], label: str, reason: str) -> ConfedError:
    return ConfedError(
        f"{label}: {reason}; its columns are {', '.join(names)}: name the right one with {role}= "
        f"(`confed data import` has --{role}-column), or say header=False (--no-header) if the first line is data"
    )


# --- values -----------------------------------------------------------------------------------------------


def typed(columns: Mapping[str, pl.Series], where: Where) -> Table:
    """Columns by role to a table; a missing rating counts as 1."""
    values = {"user": _ids(columns["user"], "user", where), "item": _ids(columns["item"], "item", where)}
    if "rating" in columns:
        values["rating"] = _ratings(columns["rating"], where)
    else:
        values["rating"] = pl.repeat(1.0, len(values["user"]), eager=True)
    if "timestamp" in columns:
        values["timestamp"] = _stamps(columns["timestamp"], where)
    return Table(pl.DataFrame(values), "real" if "timestamp" in columns else "none")


def _first(mask: pl.Series) -> int | None:
    return mask.arg_max() if mask.any() else None


def _ids(column: pl.Series, role: str, where: Where) -> pl.Series:
    if column.dtype.is_float() and bool((column.is_finite() & (column == column.round())).all()):
        column = column.cast(pl.Int64)  # pandas turns integers into floats where some are missing
    try:
        ids = column.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise ConfedError(f"{where(0)}: {role} ids of type {column.dtype} cannot be used; make them text") from None
    bad = _first(ids.is_null() | (ids.str.strip_chars() == ""))
    if bad is not None:
        raise ConfedError(f"{where(bad)}: the {role} id is empty; fill it in or remove the row")
    return ids


def _numbers(column: pl.Series, what: str, where: Where) -> pl.Series:
    """As floats, null where a text is no number."""
    try:
        numbers = column.cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError:
        raise ConfedError(f"{where(0)}: {what} of type {column.dtype} are not numbers") from None
    if column.dtype == pl.String and numbers.null_count():
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    return numbers


def _ratings(column: pl.Series, where: Where) -> pl.Series:
    numbers = _numbers(column, "ratings", where)
    bad = _first(~numbers.is_finite().fill_null(False))
    if bad is not None:
        raise ConfedError(f"{where(bad)}: the rating is {_shown(column[bad])}, not a finite number")
    return numbers


def _stamps(column: pl.Series, where: Where) -> pl.Series:
    if column.dtype == pl.String:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count() == 0:
            return whole
        micros = _iso_dates(column)
    else:
        micros = column.cast(pl.Datetime("us")).to_physical() if column.dtype.is_temporal() else None
    if micros is not None:
        _require(micros.is_not_null(), column, where)
        return micros // 1_000_000 if bool((micros % 1_000_000 == 0).all()) else micros
    if column.dtype.is_integer():
        _require(column.is_not_null(), column, where)
        return column.cast(pl.Int64)
    numbers = _numbers(column, "time stamps", where)
    _require(numbers.is_finite().fill_null(False), column, where)
    whole_seconds = bool((numbers == numbers.round()).all())
    return (numbers if whole_seconds else (numbers * 1e6).round()).cast(pl.Int64)


def _iso_dates(column: pl.Series) -> pl.Series | None:
    """Microseconds of dates such as 2024-05-01 or 2024-05-01T10:00:00Z, null where a text is none.

    Other ways to write dates are not guessed: 01/02/2024 is two different days.
    """
    if not column.str.contains(r"^\s*\d{4}-\d{2}-\d{2}").any():
        return None
    text = column.str.strip_chars()
    micros = text.str.to_datetime(strict=False, time_unit="us", time_zone="UTC").to_physical()
    # polars takes the first value's pattern for all; some writers leave out fractions that are zero.
    others = micros.is_null() & text.is_not_null()
    if others.any():
        micros = micros.scatter(others.arg_true(), [_iso_date(one) for one in text.filter(others)])
    return micros


def _iso_date(text: str) -> int | None:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)


def _require(usable: pl.Series, column: pl.Series, where: Where) -> None:
    bad = _first(~usable)
    if bad is not None:
        raise ConfedError(
            f"{where(bad)}: the time stamp is {_shown(column[bad])}, neither a number nor a date such as "
            "2024-05-01 10:00:00"
        )


def _shown(value: object) -> str:
    return "empty" if value is None or value == "" else repr(value)
