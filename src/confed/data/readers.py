"""Files to one typed table, whatever their format, and files of titles."""

from __future__ import annotations

import json
import re
from pathlib import Path

from confed.data.boundary import in_our_words
from confed.data.contents import content, decoded, first_line, require_file
from confed.data.dates import DateOrder
from confed.data.delimited import FORMATS, Format, Text, read_text
from confed.data.excel import read_excel
from confed.data.headers import is_usual, plain_name
from confed.data.jsonlines import read_json_lines
from confed.data.parquet import read_parquet
from confed.data.reading import COLUMNS
from confed.data.values import Table
from confed.errors import ConfedError, unknown_name

_TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".inter", ".jsonl", ".ndjson", ".json")
_BINARY_SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel"}
_FIRST_BYTES = {b"PAR1": "parquet", b"PK\x03\x04": "excel"}
_JSON = re.compile(r"""\s*(\[\s*)?(\{\s*"|[\[{]?\s*$)""")
"""How an object begins, or an array of objects, or either of them on several lines."""
_ALL_FORMATS = (*FORMATS, "jsonl", "parquet", "excel")


def read(
    path: str | Path,
    format: str | None = None,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    title: str | None = None,
    date_order: DateOrder | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
) -> Table:
    """The interactions in `path`, whose format is found from its name and first line unless it is given.

    `user`, `item`, `rating`, `timestamp` and `title` name the columns where the usual names do not find them. In a file
    without header columns are called 1, 2, 3, ... and default to user, item, rating, timestamp. `date_order` says
    whether 03/04/2024 is a day of April (dmy) or of March (mdy).
    """
    path = Path(path)
    named = zip(COLUMNS, (user, item, rating, timestamp, title), strict=True)
    given = {role: name for role, name in named if name is not None}
    if format is not None and format not in _ALL_FORMATS:
        raise unknown_name("file format", format, _ALL_FORMATS)
    with in_our_words(str(path), "file", "mend it, or save it in another format, such as CSV"):
        require_file(path)
        kind = format or _binary_format(path)
        if kind == "parquet":
            return read_parquet(path, given, date_order)
        if kind == "excel":
            return read_excel(path, given, date_order, header=header)
        text = decoded(path, content(path), encoding)
        kind = kind or _text_format(path, text, described=bool(given or separator or header is not None))
        if kind != "jsonl" and _is_json(first_line(text)):
            raise ConfedError(f"{path}: its lines are JSON, not {kind}; leave out --format, or say --format jsonl")
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
    with path.open("rb") as file:
        found = _FIRST_BYTES.get(file.read(4))
    if found != "parquet" and (suffix := _suffix(path)) and suffix not in _TEXT_SUFFIXES:
        raise ConfedError(
            f"{path}: files ending in {suffix!r} are not supported; use {', '.join(_TEXT_SUFFIXES)} (each also .gz), "
            f".xlsx or .parquet, or name the format with --format: {', '.join(_ALL_FORMATS)}"
        )
    return found


def _is_json(line: str) -> bool:
    """Names of columns may be in brackets, too: an array is one that can be read."""
    if _JSON.match(line):
        return True
    try:
        return isinstance(json.loads(line), list)
    except (ValueError, RecursionError):
        return False


def _text_format(path: Path, text: str, *, described: bool) -> str:
    """The format's name. Where the user described columns or separator, only the plain formats are meant."""
    suffix, first = _suffix(path), first_line(text)
    names = [plain_name(name) for name in re.split(r"[,\t]", first)]
    guesses = {
        "jsonl": suffix in {".jsonl", ".ndjson", ".json"} or _is_json(first),
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
