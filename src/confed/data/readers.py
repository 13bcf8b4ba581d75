"""Files to one typed table, whatever their format.

Everything textual (CSV, TSV, MovieLens, RecBole, Last.fm, Tenrec) is one parser with different settings, see
`FORMATS`. Reading is fast because polars parses; when polars stumbles or its result looks odd (short or blank
lines), the file is read again with Python's own `csv`, which is slow but knows the line of every record.
Errors therefore name the file and the line, and good files do not pay for it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from confed.data.columns import (
    ROLES,
    Table,
    is_usual,
    places_by_name,
    places_by_number,
    plain_name,
    typed,
)
from confed.errors import ConfedError, unknown_name

METADATA_KEY = "confed"
"""Parquet files of ours carry under this key what four columns cannot say (see `Interactions.save`)."""

_TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".inter")
_UNIT_SEPARATOR = "\x1f"  # stands in for separators of several characters, which polars and csv cannot take
_MILLISECONDS = 100_000_000_000  # read as seconds this is the year 5138


@dataclass(frozen=True)
class Format:
    """The settings by which one textual format differs from another."""

    separator: str | None = None
    """None: found from the first line."""
    header: bool | None = None
    """None: found from the first line."""
    quote: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """Roles whose column has an unusual name."""
    finish: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    """Applied to the typed columns at the end."""


def _to_seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """Last.fm's stamps are milliseconds; a copy that is already in seconds stays as it is."""
    if "timestamp" not in frame.columns:
        return frame
    stamp = pl.col("timestamp")
    return frame.with_columns(timestamp=pl.when(stamp > _MILLISECONDS).then(stamp // 1000).otherwise(stamp))


def _clicked(frame: pl.DataFrame) -> pl.DataFrame:
    """A Tenrec row is an exposure, an interaction is a click: FedRAP's loader keeps click > 0 as well."""
    return frame.filter(pl.col("rating") > 0)


FORMATS: dict[str, Format] = {
    "csv": Format(quote='"'),
    "tsv": Format(separator="\t", quote='"'),
    "movielens": Format(separator="::", header=False),
    "u.data": Format(separator="\t", header=False),
    "recbole": Format(separator="\t", header=True),
    "lastfm": Format(separator="\t", header=True, finish=_to_seconds),
    "tenrec": Format(separator=",", header=True, columns={"rating": "click"}, finish=_clicked),
}


def read(
    path: str | Path,
    format: str | None = None,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
) -> Table:
    """The interactions in `path`, whose format is found from its name and first line unless it is given.

    `user`, `item`, `rating` and `timestamp` name the columns where the usual names do not find them. In a
    file without header columns are called 1, 2, 3, ... and default to user, item, rating, timestamp.
    """
    path = Path(path)
    given = {role: name for role, name in zip(ROLES, (user, item, rating, timestamp), strict=True) if name}
    if format == "parquet" or (format is None and _is_parquet(path)):
        return _read_parquet(path, given)
    text = _decode(path, _content(path), encoding)
    described = bool(given or separator or header is not None)
    kind = format or _detect(path, text, described)
    if kind not in FORMATS:
        raise unknown_name("file format", kind, [*FORMATS, "parquet"])
    return _read_text(_Text.of(path, text, FORMATS[kind], separator, header), FORMATS[kind], given)


_TITLE_LAYOUTS = {
    "u.item": Format(separator="|", header=False),
    "movies.dat": Format(separator="::", header=False),
    "artists.dat": Format(separator="\t", header=True),
    ".item": Format(separator="\t", header=True),
    ".csv": Format(separator=",", header=True, quote='"'),
}


def read_titles(path: Path) -> dict[str, str]:
    """Item id to title: the first two columns of MovieLens', Last.fm's, RecBole's or a CSV file."""
    data = _content(path)
    try:
        text = _decode(path, data, "utf-8")
    except ConfedError:
        text = _decode(path, data, "latin-1")  # MovieLens wrote its titles before UTF-8
    kind = _TITLE_LAYOUTS.get(path.name) or _TITLE_LAYOUTS[path.suffix]
    layout = _Text.of(path, text, kind, None, None)
    year = next((i for i, name in enumerate(layout.names) if plain_name(name) == "releaseyear"), None)
    titles = {}
    for _, fields in layout.records():
        dated = year is not None and fields[year]
        titles[fields[0]] = f"{fields[1]} ({dated})" if dated else fields[1]
    return titles


# --- bytes and format -------------------------------------------------------------------------------------


def _content(path: Path) -> bytes:
    """All bytes of a file, decompressed if it is gzipped."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except FileNotFoundError:
        raise ConfedError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfedError(f"{path} is a folder: name a file in it") from None
    except EOFError:
        raise ConfedError(
            f"{path}: the gzip data stops before its end; the file is truncated, copy or download it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ConfedError(f"{path}: damaged gzip data ({error}); copy or download the file again") from error
    except OSError as error:
        raise ConfedError(f"{path}: cannot be read ({error.strerror or error})") from error


def _decode(path: Path, data: bytes, encoding: str) -> str:
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except LookupError:
        raise ConfedError(
            f"{path}: unknown text encoding {encoding!r}; usual ones are utf-8, latin-1, utf-16"
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfedError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not {encoding} text; if the file is in "
            "another encoding, name it with encoding= (--encoding), for instance latin-1 or utf-16"
        ) from None
    if not text.strip():
        raise ConfedError(f"{path} is empty: expected one interaction per line")
    return text


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in {".parquet", ".pq"}:
        return True
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False  # reading it as text gives the proper message


def _detect(path: Path, text: str, described: bool) -> str:
    """The format's name. Where the user described columns or separator, only the plain formats are meant."""
    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if suffix and suffix not in _TEXT_SUFFIXES:
        raise ConfedError(
            f"{path}: files ending in {suffix!r} are not supported; use {', '.join(_TEXT_SUFFIXES)} (each "
            f"also .gz) or .parquet, or name the format, format= (--format): {', '.join(FORMATS)}, parquet"
        )
    first = _first_line(text)
    names = [plain_name(name) for name in re.split(r"[,\t]", first)]
    guesses = {
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


def _first_line(text: str) -> str:
    line = re.search(r"[^\r\n]+", text)
    return line.group() if line else ""


# --- text -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """A text file whose layout is settled."""

    path: Path
    text: str
    separator: str
    quote: str | None
    header: bool = False
    names: Sequence[str] = ()

    @classmethod
    def of(cls, path: Path, text: str, kind: Format, separator: str | None, header: bool | None) -> _Text:
        named = separator or kind.separator or _sniff_separator(_first_line(text))
        if len(named) > 1:
            text = text.replace(named, _UNIT_SEPARATOR)
        layout = cls(path, text, named if len(named) == 1 else _UNIT_SEPARATOR, kind.quote)
        line, fields = next(layout._all_records())
        if len(fields) < 2:
            raise ConfedError(
                f"{path}, line {line}: only one column with separator {named!r}: {fields[0][:80]!r}; "
                "name the right one with separator= (--separator)"
            )
        header = kind.header if header is None else header
        header = _looks_like_header(fields) if header is None else header
        names = [name.strip() for name in fields] if header else [str(i + 1) for i in range(len(fields))]
        return replace(layout, header=header, names=names)

    def columns(self, places: Sequence[int]) -> list[pl.Series]:
        """The text of the columns at `places`, one value per record."""
        frame = self._fast()
        if frame is not None:
            return [frame.to_series(place) for place in places]
        rows = [fields for _, fields in self.records()]
        if not rows:
            raise ConfedError(f"{self.path} has a header but no rows: expected one interaction per line")
        return [pl.Series([fields[place] for fields in rows], dtype=pl.String) for place in places]

    def _fast(self) -> pl.DataFrame | None:
        """What polars makes of it, or None where only a slow reading can tell what is meant."""
        if self.text[0] in "\r\n":
            return None
        try:
            frame = pl.read_csv(
                self.text.rstrip("\r\n").encode(),
                has_header=self.header,
                separator=self.separator,
                quote_char=self.quote,
                infer_schema=False,
            )
        except pl.exceptions.PolarsError:
            return None
        # polars fills up short and blank lines with nulls, and gives nulls for empty last fields as well.
        odd = frame.width != len(self.names) or frame.height == 0 or frame.to_series(-1).null_count() > 0
        return None if odd else frame

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of each record; every record has as many fields as the first."""
        records = self._all_records()
        if self.header:
            next(records)
        for line, fields in records:
            if len(fields) != len(self.names):
                first = "the header" if self.header else "the first line"
                raise ConfedError(
                    f"{self.path}, line {line}: {len(fields)} field(s) where {first} has {len(self.names)}; "
                    "complete or remove the line (is a quotation mark left open, or the file cut off?)"
                )
            yield line, fields

    def _all_records(self) -> Iterator[tuple[int, list[str]]]:
        lines = csv.reader(
            io.StringIO(self.text, newline=""),
            delimiter=self.separator,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
        )
        start = 1
        try:
            for fields in lines:
                if fields:
                    yield start, fields
                start = lines.line_num + 1
        except csv.Error as error:
            raise ConfedError(
                f"{self.path}, line {start}: {error}; is a quotation mark opened there and never closed?"
            ) from error

    def where(self, row: int) -> str:
        line = next(line for number, (line, _) in enumerate(self.records()) if number == row)
        return f"{self.path}, line {line}"


def _sniff_separator(first: str) -> str:
    return next((separator for separator in ("\t", "::", ",", ";", "|") if separator in first), " ")


def _looks_like_header(fields: Sequence[str]) -> bool:
    """Data has a number behind the two ids, or is nothing but two ids of which one at least is a number."""
    return not any(_is_number(text) for text in (fields[2:] or fields))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_text(text: _Text, kind: Format, given: Mapping[str, str]) -> Table:
    if text.header:
        fixed = {role: name for role, name in kind.columns.items() if name in text.names}
        places = places_by_name(text.names, {**fixed, **given}, str(text.path))
    else:
        places = places_by_number(text.names, given, str(text.path))
    if kind is FORMATS["lastfm"] and "timestamp" not in places and "month" in text.names:
        raise ConfedError(
            f"{text.path} has days, months and years instead of time stamps: read "
            "user_taggedartists-timestamps.dat from the same archive"
        )
    columns = dict(zip(places, text.columns(list(places.values())), strict=True))
    table = typed(columns, text.where)
    if kind.finish is None:
        return table
    frame = kind.finish(table.frame)
    if frame.height == 0:
        raise ConfedError(f"{text.path}: no row has a {text.names[places['rating']]} above 0")
    return Table(frame, table.time)


# --- Parquet ----------------------------------------------------------------------------------------------


def _read_parquet(path: Path, given: Mapping[str, str]) -> Table:
    if not path.is_file():
        raise ConfedError(f"{path}: no such file")
    try:
        names = list(pl.read_parquet_schema(path))
        places = places_by_name(names, given, str(path))
        frame = pl.read_parquet(path, columns=list(places.values()))
        saved = json.loads(pl.read_parquet_metadata(path).get(METADATA_KEY, "{}"))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfedError(f"{path}: not a readable Parquet file ({reason}); write it again") from error
    if frame.height == 0:
        raise ConfedError(f"{path} is empty: it has columns but no rows")
    columns = {role: frame[names[place]] for role, place in places.items()}
    table = typed(columns, lambda row: f"{path}, row {row + 1}")
    if not saved:
        return table
    return Table(table.frame, saved["time"], saved["name"], saved["pseudo_time"], saved["titles"])
