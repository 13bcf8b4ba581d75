"""Files to one typed table, whatever their format, and files of titles."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from confed.data.columns import ROLES, is_usual, places_by_name, plain_name
from confed.data.contents import content, decoded, first_line
from confed.data.dates import DateOrder
from confed.data.delimited import FORMATS, Format, Text, read_text
from confed.data.excel import read_excel
from confed.data.jsonlines import read_json_lines
from confed.data.values import Table, typed
from confed.errors import ConfedError, unknown_name

METADATA_KEY = "confed"
"""Parquet files of ours carry under this key what four columns cannot say (see `Interactions.save`)."""

_TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".inter", ".jsonl", ".ndjson", ".json")
_BINARY_SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel"}
_FIRST_BYTES = {b"PAR1": "parquet", b"PK\x03\x04": "excel"}
_ALL_FORMATS = (*FORMATS, "jsonl", "parquet", "excel")


def read(
    path: str | Path,
    format: str | None = None,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    date_order: DateOrder | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
) -> Table:
    """The interactions in `path`, whose format is found from its name and first line unless it is given.

    `user`, `item`, `rating` and `timestamp` name the columns where the usual names do not find them. In a file without
    header columns are called 1, 2, 3, ... and default to user, item, rating, timestamp. `date_order` says whether
    03/04/2024 is a day of April (dmy) or of March (mdy).
    """
    path = Path(path)
    given = {role: name for role, name in zip(ROLES, (user, item, rating, timestamp), strict=True) if name}
    if format is not None and format not in _ALL_FORMATS:
        raise unknown_name("file format", format, _ALL_FORMATS)
    kind = format or _binary_format(path)
    if kind == "parquet":
        return _read_parquet(path, given, date_order)
    if kind == "excel":
        return read_excel(path, given, date_order, header=header)
    text = decoded(path, content(path), encoding)
    kind = kind or _text_format(path, text, described=bool(given or separator or header is not None))
    if kind == "jsonl":
        return read_json_lines(path, text, given, date_order)
    return read_text(Text.of(path, text, FORMATS[kind], separator, header), FORMATS[kind], given, date_order)


_TITLE_LAYOUTS = {
    "u.item": Format(separator="|", header=False),
    "movies.dat": Format(separator="::", header=False),
    "artists.dat": Format(separator="\t", header=True),
    ".item": Format(separator="\t", header=True),
    ".csv": Format(separator=",", header=True, quote='"'),
}


def read_titles(path: Path) -> dict[str, str]:
    """Item id to title: the first two columns of MovieLens', Last.fm's, RecBole's or a CSV file."""
    data = content(path)
    try:
        text = decoded(path, data, "utf-8")
    except ConfedError:
        text = decoded(path, data, "latin-1")  # MovieLens wrote its titles before UTF-8
    kind = _TITLE_LAYOUTS.get(path.name) or _TITLE_LAYOUTS[path.suffix]
    layout = Text.of(path, text, kind, None, None)
    year = next((i for i, name in enumerate(layout.names) if plain_name(name) == "releaseyear"), None)
    titles = {}
    for _, fields in layout.records():
        dated = year is not None and fields[year]
        titles[fields[0]] = f"{fields[1]} ({dated})" if dated else fields[1]
    return titles


# --- formats ----------------------------------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def _binary_format(path: Path) -> str | None:
    """What the name says, or else the first bytes; None for text."""
    if found := _BINARY_SUFFIXES.get(path.suffix.lower()):
        return found
    try:
        with path.open("rb") as file:
            found = _FIRST_BYTES.get(file.read(4))
    except OSError:
        found = None  # reading it as text gives the proper message
    if found != "parquet" and (suffix := _suffix(path)) and suffix not in _TEXT_SUFFIXES:
        raise ConfedError(
            f"{path}: files ending in {suffix!r} are not supported; use {', '.join(_TEXT_SUFFIXES)} (each also .gz), "
            f".xlsx or .parquet, or name the format with --format: {', '.join(_ALL_FORMATS)}"
        )
    return found


def _text_format(path: Path, text: str, *, described: bool) -> str:
    """The format's name. Where the user described columns or separator, only the plain formats are meant."""
    suffix, first = _suffix(path), first_line(text)
    names = [plain_name(name) for name in re.split(r"[,\t]", first)]
    guesses = {
        "jsonl": suffix in {".jsonl", ".ndjson", ".json"} or first.lstrip().startswith("{"),
        "recbole": suffix == ".inter" or ":token" in first,
        "tsv": suffix in {".tsv", ".tab"},
        "csv": described,
        "u.data": path.name.removesuffix(".gz") == "u.data",
        "movielens": "::" in first and suffix != ".csv",
        "lastfm": names[:2] == ["userid", "artistid"],
        "tenrec": names[:3] == ["userid", "itemid", "click"]
        and not any(is_usual(role, name) for role in ("rating", "timestamp") for name in names),
    }
    return next((name for name, fits in guesses.items() if fits), "csv")


# --- Parquet ----------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, given: Mapping[str, str], date_order: DateOrder | None) -> Table:
    if not path.is_file():
        raise ConfedError(f"{path}: no such file")
    try:
        names = list(pl.scan_parquet(path, glob=False).collect_schema())  # a name may have brackets
        places = places_by_name(names, given, str(path))
        frame = pl.read_parquet(path, columns=list(places.values()), glob=False)
        saved = json.loads(pl.read_parquet_metadata(path).get(METADATA_KEY, "{}"))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfedError(f"{path}: not a readable Parquet file ({reason}); write it again") from error
    if frame.height == 0:
        raise ConfedError(f"{path} is empty: it has columns but no rows")
    columns = {role: frame[names[place]] for role, place in places.items()}
    table = typed(columns, lambda row: f"{path}, row {row + 1}", date_order)
    if not saved:
        return table
    return Table(table.frame, saved["time"], saved["name"], saved["pseudo_time"], saved["titles"])
