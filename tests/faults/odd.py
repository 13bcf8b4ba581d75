"""Odd values: texts that are almost numbers or dates, and columns of every type that polars and Arrow have."""

from __future__ import annotations

import datetime as dt
import decimal
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa

NOTHING = ("", " ", "\t", "null", "None", "NaN", "nan", "NA", "N/A", "-", "\u00a0", "\ufeff", "\u200b")
NUMBERS = (
    *(
        "0",
        "-0",
        "1.0",
        "1e0",
        "1e308",
        "-1e308",
        "1e400",
        "-1e400",
        "1e-400",
        "inf",
        "-inf",
        "+1",
        "1_000",
        "1,5",
        "0x10",
    ),
    *(
        "9" * 18,
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "9" * 40,
        "9" * 400,
        "½",
        "١٢٣",
        "1 000",
    ),
    *(
        "18446744073709551616",
        "9007199254740993",
        "9007199254740993.0",
        "1.5e15",
        "1e15.5",
        ".",
        "-.5e-3",
        "1e",
        "00012",
    ),
)
DATES = (
    *("0000-00-00", "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "-0001-01-01", "2024-02-30", "2024-13-01"),
    *("2024-01-01T24:00:00", "2024-01-01T23:59:60", "2024-01-01T00:00:00.999999999999", "2024-01-01T00:00:00+99:99"),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "2024-W53-7", "20240403T140500Z", "24:00", "1/1/0000"),
    *(
        "00/00/0000",
        "31/31/2024",
        "03/04/24",
        "3.4.24",
        "13-13-13",
        "12/31/9999 23:59 -14:00",
        "Feb 30, 2024",
        "1 Jan 0000",
    ),
    *(
        "29.2.2023",
        "1.5.2024",
        "05/13/2024",
        "13/05/2024",
        "Apr 3, 2024 13:05 PM",
        "Wed, 03 Apr 2024 14:05:00 GMT",
        "now",
    ),
)
SIGNS = (
    "\0",
    "a\0b",
    "\x1f",
    "\x1c",
    "::",
    "\t",
    ",",
    ";",
    '"',
    '""',
    '"a',
    "'",
    "\\",
    "\r",
    "\n",
    "a\nb",
    "a\r\nb",
    "{}",
    "[1]",
)
TEXTS = (
    *(
        "é",
        "日本",
        "\U0001f600",
        "\u202e",
        "\u2028",
        "a" * 1000,
        "=1+1",
        "../..",
        "true",
        "-1",
        "\x1b[31m",
        "\udfff",
        "ﬁ",
    ),
)


def text(random: Random) -> str:
    """Something that may stand in a field."""
    kinds = (NOTHING, NUMBERS, DATES, SIGNS, TEXTS)
    if random.random() < 0.75:
        return random.choice(random.choice(kinds))
    if random.random() < 0.5:
        return str(random.randrange(-(10 ** random.randrange(1, 60)), 10 ** random.randrange(1, 60)))
    return "".join(chr(random.choice((random.randrange(128), random.randrange(0x10FFFF)))) for _ in range(3))


def value(random: Random) -> Any:
    """Something that may stand in a cell or an object."""
    values = (
        None,
        True,
        False,
        0,
        -1,
        2**53 + 1,
        2**63,
        2**70,
        1.5,
        -0.0,
        1e300,
        float("nan"),
        float("inf"),
        [],
        [1],
        {},
        {"a": 1},
    )
    return random.choice(values) if random.random() < 0.5 else text(random)


# --- columns ----------------------------------------------------------------------------------------------------

_UNITS = ("ms", "us", "ns")
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
_FLOATS = (
    0.0,
    -0.0,
    1.0,
    1.5,
    2.0**24,
    2.0**53,
    9.3e18,
    1e19,
    1e300,
    -1e300,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
)
_WHOLE_VALUES = (0, 1, -1, 100, 2**15, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**100)
_DATETIME_ZONES = (None, "UTC", "Europe/Berlin")


def column(random: Random, rows: int) -> pl.Series:
    """A column of a type and with values that nobody may have thought of."""
    makers = (_whole, _float, _text_column, _temporal, _bytes, _other, _nested, _nothing)
    found = random.choice(makers)(random, rows)
    if random.random() < 0.3:
        missing = [random.random() < 0.3 for _ in range(rows)]
        found = pl.select(pl.when(pl.Series(missing)).then(None).otherwise(found)).to_series()
    return found


def _whole(random: Random, rows: int) -> pl.Series:
    values = [random.choice(_WHOLE_VALUES) for _ in range(rows)]
    return pl.Series(values, dtype=pl.Int128).cast(random.choice(_WHOLE), strict=False)


def _float(random: Random, rows: int) -> pl.Series:
    few = [random.choice(_FLOATS) for _ in range(2)]
    return pl.Series(
        [random.choice((1.0, 2.0, *few)) for _ in range(rows)], dtype=random.choice((pl.Float32, pl.Float64))
    )


def _text_column(random: Random, rows: int) -> pl.Series:
    values = [_encodable(text(random)) if random.random() < 0.5 else str(row) for row in range(rows)]
    kind = random.choice((pl.String, pl.Categorical, pl.Enum(sorted(set(values)))))
    return pl.Series(values, dtype=pl.String).cast(kind)


def _encodable(found: str) -> str:
    return found.encode(errors="replace").decode()


def _temporal(random: Random, rows: int) -> pl.Series:
    kinds = (
        pl.Date,
        pl.Time,
        *(pl.Datetime(unit, zone) for unit in _UNITS for zone in _DATETIME_ZONES),
        *(pl.Duration(unit) for unit in _UNITS),
    )
    kind = random.choice(kinds)
    bits = 31 if kind == pl.Date else random.choice((31, 50, 62, 63))
    most = 86_400 * 10**9 if kind == pl.Time else 2**bits
    values = [random.randrange(0 if kind == pl.Time else -most, most) for _ in range(rows)]
    return pl.Series(values, dtype=pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)


def _bytes(random: Random, rows: int) -> pl.Series:
    return pl.Series(
        [random.choice((b"a", b"1", b"", b"\xff", random.randbytes(3))) for _ in range(rows)], dtype=pl.Binary
    )


def _other(random: Random, rows: int) -> pl.Series:
    if random.random() < 0.5:
        return pl.Series([random.random() < 0.5 for _ in range(rows)])
    scale = random.randrange(0, 10)
    values = [decimal.Decimal(random.randrange(-(10**12), 10**12)).scaleb(-scale) for _ in range(rows)]
    return pl.Series(values, dtype=pl.Decimal(38, scale))


def _nested(random: Random, rows: int) -> pl.Series:
    values = [random.randrange(9) for _ in range(rows)]
    return random.choice(
        (
            pl.Series([[one] for one in values]),
            pl.Series([[one, 1] for one in values], dtype=pl.Array(pl.Int64, 2)),
            pl.Series([{"a": one} for one in values]),
            pl.Series([{"a": [{"b": one}]} for one in values]),
            pl.Series([[[]] for _ in values], dtype=pl.List(pl.List(pl.Null))),
        )
    )


def _nothing(random: Random, rows: int) -> pl.Series:
    return pl.Series(
        [None] * rows, dtype=random.choice((pl.Null, pl.String, pl.Int64, pl.Float64, pl.Date, pl.List(pl.Int8)))
    )


def arrow(random: Random, rows: int) -> pa.Array:
    """The same, and types that only Arrow has."""
    whole = [random.randrange(100) for _ in range(rows)]
    only = (
        lambda: pa.array([dt.timedelta(days=one) for one in whole], pa.duration("s")),
        lambda: pa.array(whole, pa.int32()).cast(pa.time32("s")),
        lambda: pa.array(whole, pa.timestamp("s", tz=random.choice((None, "UTC", "+05:30")))),
        lambda: pa.array([decimal.Decimal(one) for one in whole], pa.decimal128(20, 2)),
        lambda: pa.array([float(one) for one in whole], pa.float16()),
        lambda: pa.array([str(one) for one in whole]).dictionary_encode(),
        lambda: pa.array([str(one) for one in whole], pa.large_string()),
        lambda: pa.array([str(one).encode().rjust(4) for one in whole], pa.binary(4)),
        lambda: pa.array([[("a", one)] for one in whole], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([(one, 2, 3) for one in whole], pa.month_day_nano_interval()),
        lambda: pa.array([bytes(one) for one in whole], pa.large_binary()),
        lambda: pa.array([one * 86_400_000 for one in whole], pa.date64()),
    )
    if random.random() < 0.3:
        return random.choice(only)()
    found = column(random, rows)
    return (found.cast(pl.Float64) if found.dtype == pl.Int128 else found).to_arrow()  # Arrow has no such integers
