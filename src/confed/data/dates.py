"""Dates as people write them, to microseconds since 1970.

What says by itself what it is, is read as that: ISO 8601, 2024/04/03, `Apr 3, 2024`, `3 Apr 2024 2:05 PM`, the dates of
mails and web servers. Without an offset it is UTC. In 03/04/2024 the day may stand first or the month: the dates of a
column that are written with one sign decide together, and one that fits a single order settles it. If all fit both, the
day is first between dots and dashes, the month between slashes, and a note says so. Years of two digits, from 1969 to
2068, are read where only one order fits; in 03-Apr-24 the day is first.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import polars as pl

from confed.data.columns import Where
from confed.errors import ConfedError, unknown_name

DateOrder = Literal["dmy", "mdy"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_MONTH = rf"(?P<name>{'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?"
    r"(?:\s*(?:z|utc|gmt))?(?:\s*(?P<offset>[+-]\d{2}(?::?\d{2})?))?(?:\s*\([^)]*\))?"
)
_TIME = rf"(?:(?:t|,?\s+)(?:at\s+)?{_CLOCK})?"


def _form(date: str) -> str:
    return rf"(?i)^(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?{date}$"


_CLEAR = (
    *(_form(rf"(?P<year>\d{{4}})[{s}](?P<month>\d{{1,2}})[{s}](?P<day>\d{{1,2}}){_TIME}") for s in "-/."),
    _form(rf"{_DAY}[\s-]+{_MONTH},?[\s-]+(?P<year>\d{{4}}|\d{{2}}){_TIME}"),
    _form(rf"{_MONTH}[\s-]+{_DAY},?[\s-]+(?P<year>\d{{4}}){_TIME}"),
    _form(rf"(?P<year>\d{{4}})[\s-]+{_MONTH}[\s-]+{_DAY}{_TIME}"),
    _form(rf"{_MONTH}\s+{_DAY}\s+{_CLOCK}\s+(?P<year>\d{{4}})"),  # C's asctime
)
_NUMBERED = {
    (sign, digits): _form(rf"(?P<one>\d{{1,2}})[{sign}](?P<two>\d{{1,2}})[{sign}](?P<three>\d{{{digits}}}){_TIME}")
    for digits in (4, 2)
    for sign in "./-"
}
_ORDERS = {4: ("dmy", "mdy"), 2: ("dmy", "mdy", "ymd")}
_USUAL_ORDER: dict[str, DateOrder] = {".": "dmy", "-": "dmy", "/": "mdy"}
_PARTS = {"d": "day", "m": "month", "y": "year"}


def require_order(order: str | None) -> None:
    if order is not None and order not in get_args(DateOrder):
        raise unknown_name("date order (--date-order)", order, get_args(DateOrder))


def is_date(text: str) -> bool:
    return any(re.match(form, text.strip()) for form in (*_CLEAR, *_NUMBERED.values()))


def read_dates(column: pl.Series, order: DateOrder | None, where: Where) -> tuple[pl.Series, list[str]]:
    """Microseconds, null where a text is no date, and notes on what had to be taken for granted."""
    rows = column.arg_unique().sort()  # days come again and again
    distinct = column.gather(rows)
    micros, notes = _read(distinct.str.strip_chars(), order, lambda row: where(rows[row]))
    return column.replace_strict(distinct, micros), notes


def _read(text: pl.Series, order: DateOrder | None, where: Where) -> tuple[pl.Series, list[str]]:
    micros, notes = _iso_dates(text), list[str]()
    for form in _CLEAR:
        rows = (micros.is_null() & text.str.contains(form)).arg_true()
        micros = micros.scatter(rows, _micros(_parts(text.gather(rows), form)))
    for (sign, digits), form in _NUMBERED.items():
        rows = (micros.is_null() & text.str.contains(form)).arg_true()
        if len(rows):
            alike = _Alike(text, rows, form, [order] if order else _ORDERS[digits], where)
            found, told = alike.settled(_USUAL_ORDER[sign] if digits == 4 else None)
            micros = micros.scatter(rows, found)
            notes += told
    others = micros.is_null() & text.is_not_null()
    return micros.scatter(others.arg_true(), [_iso_date(one) for one in text.filter(others)]), notes


class _Alike:
    """Dates of one column and one form, such as 03/04/2024: they have one order of day and month."""

    def __init__(self, column: pl.Series, rows: pl.Series, form: str, orders: Sequence[str], where: Where) -> None:
        self.text = column.gather(rows)
        parts = _parts(self.text, form)
        self.read = {order: _micros(_named(parts, order)) for order in orders}
        self.where: Where = lambda place: where(rows[place])

    def settled(self, usual: DateOrder | None) -> tuple[pl.Series, list[str]]:
        """Microseconds in the order that fits. If several do, in the `usual` one with a note, or not at all."""
        fitting = {order: micros for order, micros in self.read.items() if not micros.null_count()}
        if not fitting:
            raise self._contradiction()
        first, *others = fitting.values()
        differing = [place for other in others if (place := first_true(first != other)) is not None]
        if not differing:
            return first, []
        place = min(differing)
        if usual is None:
            raise self._unsettled(fitting, place)
        return fitting[usual], [self._note(fitting, place, usual)]

    def _contradiction(self) -> ConfedError:
        """No order fits: because of one text, or of two that have none in common."""
        misfits = pl.DataFrame(self.read).select(pl.all_horizontal(pl.all().is_null())).to_series()
        place = first_true(misfits)
        if place is not None:
            (order, *others) = self.read
            told = "" if others else f" with {_first_part(order)} first (--date-order {order})"
            return ConfedError(f"{self._found(place)}, which is no date{told}; mend or remove the row")
        failed = {order: first_true(micros.is_null()) or 0 for order, micros in self.read.items()}
        last = max(failed.values())
        other = min(place for order, place in failed.items() if self.read[order][last] is not None)
        return ConfedError(
            f"{self._found(last)}, but {self.text[other]!r} ({self.where(other)}) has day and month in another order; "
            "write all dates in one"
        )

    def _unsettled(self, fitting: Mapping[str, pl.Series], place: int) -> ConfedError:
        days = " or ".join(dict.fromkeys(_day(micros[place]) for micros in fitting.values()))
        return ConfedError(
            f"{self._found(place)}, which may be {days}: write years with four digits, or say which part comes first "
            "with --date-order: dmy or mdy"
        )

    def _note(self, fitting: Mapping[str, pl.Series], place: int, usual: DateOrder) -> str:
        other = next(order for order in fitting if order != usual)
        return (
            f"{self.where(place)}: {self.text[place]!r} is read as {_day(fitting[usual][place])}, with "
            f"{_first_part(usual)} first, though all dates like it fit both orders. If {_first_part(other)} comes "
            f"first, say --date-order {other}"
        )

    def _found(self, place: int) -> str:
        return f"{self.where(place)}: the time stamp is {self.text[place]!r}"


def first_true(mask: pl.Series) -> int | None:
    return mask.arg_max() if mask.any() else None


def _first_part(order: str) -> str:
    return f"the {_PARTS[order[0]]}"


def _day(micros: int) -> str:
    return str(pl.Series([micros]).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d")[0])


# --- parts ------------------------------------------------------------------------------------------------------


def _parts(text: pl.Series, form: str) -> pl.DataFrame:
    """What the groups of a form hold, as text."""
    return text.str.extract_groups(form).struct.unnest()


def _named(parts: pl.DataFrame, order: str) -> pl.DataFrame:
    """The three numbers of a date by what they are in this order."""
    return parts.rename({number: _PARTS[part] for number, part in zip(("one", "two", "three"), order, strict=True)})


def _micros(parts: pl.DataFrame) -> pl.Series:
    """Null where the parts are no moment."""
    if "name" in parts.columns:
        numbers = {name: str(number) for number, name in enumerate(_MONTHS, start=1)}
        parts = parts.with_columns(month=pl.col("name").str.to_lowercase().replace_strict(numbers))
    year, hour, half = pl.col("year"), pl.col("hour").cast(pl.Int64).fill_null(0), pl.col("half").str.to_lowercase()
    century = (
        pl.when(year.str.len_chars() == 4).then(pl.lit("")).when(year < "69").then(pl.lit("20")).otherwise(pl.lit("19"))
    )
    of_day = pl.when(half.is_null()).then(hour).when(hour.is_between(1, 12)).then(hour % 12 + 12 * (half == "p"))
    minute, second = (pl.col(name).fill_null("0") for name in ("minute", "second"))
    moment = pl.format("{}{}-{}-{} {}:{}:{}", century, year, "month", "day", of_day, minute, second)
    offset = pl.col("offset").str.replace(":", "").str.pad_end(5, "0")
    away = offset.str.slice(1, 2).cast(pl.Int64) * 60 + offset.str.slice(3).cast(pl.Int64)
    east = pl.when(offset.str.starts_with("-")).then(-away).otherwise(away).fill_null(0)
    fraction = pl.col("fraction").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)
    moment = pl.when(year.str.len_chars().is_in([2, 4])).then(moment)
    whole = moment.str.strptime(pl.Datetime("us"), "%Y-%m-%d %H:%M:%S", strict=False).to_physical()
    return parts.select(whole + fraction - east * 60_000_000).to_series()


# --- ISO 8601 ---------------------------------------------------------------------------------------------------


def _iso_dates(text: pl.Series) -> pl.Series:
    """The usual forms, which polars reads fastest: all that are written like the first, null elsewhere."""
    micros = pl.repeat(None, len(text), dtype=pl.Int64, eager=True)
    rows = text.str.contains(r"^\d{4}-\d{2}-\d{2}").arg_true()
    if not len(rows):
        return micros
    return micros.scatter(
        rows, text.gather(rows).str.to_datetime(strict=False, time_unit="us", time_zone="UTC").to_physical()
    )


def _iso_date(text: str) -> int | None:
    """The rarer forms of ISO 8601, such as 20240403T140500Z or 2024-W14-3."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)
