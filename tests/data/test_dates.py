"""Dates as people write them: every form, both orders, what contradicts itself."""

from __future__ import annotations

import datetime as dt
import email.utils
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.data.dates import is_date, read_dates, require_order
from confed.errors import ConfedError

EPOCH = dt.datetime(1970, 1, 1)
MINUTE = dt.timedelta(minutes=1)


def place(row: int) -> str:
    return f"row {row + 1}"


def read(*texts: str | None, order: str | None = None) -> tuple[list[dt.datetime | None], list[str]]:
    micros, notes = read_dates(pl.Series(texts, dtype=pl.String), order, place)  # type: ignore[arg-type]
    return [None if one is None else EPOCH + dt.timedelta(microseconds=one) for one in micros], notes


def moment(*texts: str) -> list[dt.datetime | None]:
    return read(*texts)[0]


# --- what says by itself what it is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("2024-04-03", "2024/04/03", "2024.04.03", "2024-4-3", "2024-W14-3"),
        *("Apr 3, 2024", "3 Apr 2024", "April 3 2024", "April 3rd, 2024", "3. April 2024", "03-Apr-2024", "03-APR-24"),
        *("Wed, 3 Apr 2024", "Wednesday, April 3, 2024", "2024 Apr 3", " 2024-04-03 "),
    ],
)
def test_days(text: str) -> None:
    assert read(text) == ([dt.datetime(2024, 4, 3)], [])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2024-04-03T14:05:00",
            "2024-04-03 14:05",
            "2024-04-03T14:05:00Z",
            "2024-04-03 14:05:00 UTC",
            "2024/4/3 14:05",
        ),
        *("2024-04-03T16:05:00+02:00", "2024-04-03 16:05:00+02", "2024-04-03T08:35:00-0530", "20240403T140500Z"),
        *("April 3 2024 2:05 PM", "Apr 3, 2024, 2:05:00 p.m.", "3 Apr 2024 14:05", "April 3, 2024 at 2:05 PM"),
        *(
            "Wed, 03 Apr 2024 14:05:00 GMT",
            "Wed, 03 Apr 2024 16:05:00 +0200 (CEST)",
            "Wednesday, 03-Apr-24 14:05:00 GMT",
        ),
        *(
            "Wed Apr  3 14:05:00 2024",
            "Wed Apr 03 14:05:00 +0000 2024",
            "Wed Apr 03 2024 16:05:00 GMT+0200 (Some Time)",
        ),
    ],
)
def test_moments(text: str) -> None:
    assert read(text) == ([dt.datetime(2024, 4, 3, 14, 5)], [])
    assert is_date(text) or text[8] == "T"


def test_halves_of_the_day() -> None:
    noon = [f"Apr 3 2024 {clock}" for clock in ("12:30 AM", "1:30 am", "12:30 pm", "11:30PM")]
    assert [one.hour for one in moment(*noon) if one] == [0, 1, 12, 23]
    assert moment("Apr 3 2024 13:30 pm", "Apr 3 2024 0:30 am") == [None, None]


def test_fractions_are_kept_to_the_microsecond() -> None:
    fine = dt.datetime(2024, 4, 3, 14, 5, 6, 120_000)
    assert moment("2024-04-03T14:05:06.12", "3 Apr 2024 14:05:06,12") == [fine, fine]
    assert moment("2024-04-03T14:05:06.123456789") == [dt.datetime(2024, 4, 3, 14, 5, 6, 123_456)]


@pytest.mark.parametrize(
    "text", ["noon", "14:05", "2024-02-30", "2024-13-01", "Apr 31, 2024", "3 Foo 2024", "", "2024-04-03 25:00"]
)
def test_what_is_no_date(text: str) -> None:
    assert moment(text, "2024-04-03") == [None, dt.datetime(2024, 4, 3)]


def test_nothing_stays_nothing_and_forms_may_be_mixed() -> None:
    day = dt.datetime(2024, 4, 13)
    texts = (None, "2024-04-13", "13.4.2024", "4/13/2024", "Apr 13, 2024", None, "13.4.2024")
    assert read(*texts) == ([None, day, day, day, day, None, day], [])


# --- round trips ------------------------------------------------------------------------------------------------

FORMS = {
    "ISO": "%Y-%m-%d %H:%M",
    "year first": "%Y/%m/%d %H:%M",
    "dots": "%d.%m.%Y %H:%M",
    "slashes": "%m/%d/%Y %I:%M %p",
    "dashes": "%d-%m-%Y %H:%M",
    "short year": "%m/%d/%y %H:%M",
    "month's name": "%b %d, %Y %I:%M %p",
    "whole name": "%B %d %Y %H:%M",
    "name second": "%d %b %Y %H:%M",
    "asctime": "%a %b %d %H:%M:00 %Y",
}
moments = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2060, 12, 31)).map(
    lambda one: one.replace(second=0, microsecond=0)
)
columns = st.lists(moments, min_size=1, max_size=12).map(lambda some: [*some, dt.datetime(2033, 12, 31)])
"""With a day that settles every order."""


@pytest.mark.parametrize("form", FORMS)
@given(columns)
def test_every_form_comes_back_and_keeps_its_order(form: str, column: list[dt.datetime]) -> None:
    back, notes = read(*(one.strftime(FORMS[form]) for one in column))
    assert (back, notes) == (column, [])


@given(columns, st.integers(-720, 720))
def test_mails_and_offsets_come_back(column: list[dt.datetime], minutes: int) -> None:
    zone = dt.timezone(minutes * MINUTE)
    there = [one.replace(tzinfo=dt.UTC).astimezone(zone) for one in column]
    assert moment(*map(email.utils.format_datetime, there)) == column
    assert moment(*(one.isoformat() for one in there)) == column
    assert moment(*(one.strftime("%d %B %Y %H:%M:%S %z") for one in there)) == column


@given(columns, st.sampled_from(["dmy", "mdy"]), st.sampled_from("./-"), st.sampled_from(["%Y", "%y"]))
def test_an_order_that_is_said_counts(column: list[dt.datetime], order: str, sign: str, year: str) -> None:
    form = sign.join({"d": "%d", "m": "%m", "y": year}[part] for part in order)
    days = [one.replace(hour=0, minute=0) for one in column]
    assert read(*(one.strftime(form) for one in days), order=order) == (days, [])


@given(
    st.lists(st.tuples(columns, st.sampled_from(sorted(FORMS))), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
def test_a_mixed_column_comes_back(parts: list[tuple[list[dt.datetime], str]], random: object) -> None:
    rows = [(one, one.strftime(FORMS[form])) for column, form in parts for one in column]
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert moment(*(text for _, text in rows)) == [one for one, _ in rows]


# --- both orders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sign", "day", "first", "other"), [(".", 4, "day", "mdy"), ("-", 4, "day", "mdy"), ("/", 3, "month", "dmy")]
)
def test_where_both_orders_fit_the_usual_one_is_taken_with_a_note(sign: str, day: int, first: str, other: str) -> None:
    texts = [text.replace("/", sign) for text in ("05/05/2024", "04/03/2024")]
    days, (note,) = read(*texts)
    assert days == [dt.datetime(2024, 5, 5), dt.datetime(2024, 7 - day, day)]
    assert note.startswith(f"row 2: {texts[1]!r} is read as 2024-0{7 - day}-0{day}, with the {first} first")
    assert note.endswith(f"say --date-order {other}")


def test_where_both_orders_mean_the_same_there_is_nothing_to_say() -> None:
    assert read("05/05/2024", "3.3.2024") == ([dt.datetime(2024, 5, 5), dt.datetime(2024, 3, 3)], [])


def test_one_date_settles_the_column_and_each_sign_its_own() -> None:
    assert read("03/04/2024", "25/12/2024") == ([dt.datetime(2024, 4, 3), dt.datetime(2024, 12, 25)], [])
    assert moment("31.12.2024", "12/31/2024", "03.04.2024", "04/03/2024")[2:] == [dt.datetime(2024, 4, 3)] * 2


@pytest.mark.parametrize(
    ("texts", "order", "message"),
    [
        (
            ("25/12/2024", "03/04/2024", "12/25/2024"),
            None,
            "row 3: the time stamp is '12/25/2024', but '25/12/2024' (row 1) has day and month in another order",
        ),
        (("12.31.2024", "31.12.2024"), None, "row 2: the time stamp is '31.12.2024', but '12.31.2024' (row 1) has"),
        (("01.01.2024", "31.02.2024"), None, "row 2: the time stamp is '31.02.2024', which is no date; mend or remove"),
        (
            ("01/02/2024", "25/12/2024"),
            "mdy",
            "row 2: the time stamp is '25/12/2024', which is no date with the month first (date_order=\"mdy\")",
        ),
        (
            ("01/02/03",),
            None,
            "row 1: the time stamp is '01/02/03', which may be 2003-02-01 or 2003-01-02 or 2001-02-03: write",
        ),
        (("01/02/03", "31/12/99", "99/12/31"), None, "row 3: the time stamp is '99/12/31', but '31/12/99' (row 2) has"),
    ],
)
def test_contradictions_name_the_row(texts: tuple[str, ...], order: str | None, message: str) -> None:
    with pytest.raises(ConfedError, match=re.escape(message)):
        read(*texts, order=order)


def test_years_of_two_digits_are_read_where_one_order_fits() -> None:
    assert moment("31/12/69", "01/01/68") == [dt.datetime(1969, 12, 31), dt.datetime(2068, 1, 1)]
    assert moment("99-12-31") == [dt.datetime(1999, 12, 31)]
    assert read("01/02/03", order="dmy") == ([dt.datetime(2003, 2, 1)], [])


def test_orders_that_are_not_known() -> None:
    require_order(None)
    with pytest.raises(ConfedError, match=r"unknown date order \(date_order=\) 'dym': did you mean"):
        require_order("dym")


def test_a_year_has_two_digits_or_four() -> None:
    """One-digit days are no years, so that only one order fits 13/4/24."""
    moments, _ = read("3/4/24 10:00", "13/4/24 10:00")
    assert moments == [dt.datetime(2024, 4, 3, 10), dt.datetime(2024, 4, 13, 10)]
