"""Text with a separator: CSV, TSV, MovieLens, RecBole, Last.fm and Tenrec are one parser with different settings.

Reading is fast because polars parses; when polars stumbles or its result looks odd (short or blank lines), the text is
read again with Python's own `csv`, which is slow but knows the line of every record. Errors therefore name the file and
the line, and good files do not pay for it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from confed.data.columns import ROLES, places_by_name, places_by_number
from confed.data.contents import first_line
from confed.data.dates import DateOrder, is_date
from confed.data.limits import BYTES, CELL, COLUMNS, HEADER
from confed.data.values import Table, typed
from confed.errors import ConfedError

_STAND_INS = "\x1f\x1e\x1d\x1c"  # for separators of several bytes, which polars cannot take
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


@dataclass(frozen=True)
class Text:
    """A text whose layout is settled."""

    path: Path
    text: str
    separator: str
    """As it stands in `text`, a single byte."""
    written: str
    """As it stands in the file."""
    quote: str | None
    header: bool = False
    names: Sequence[str] = ()

    @classmethod
    def of(cls, path: Path, text: str, kind: Format, separator: str | None, header: bool | None) -> Text:
        _require_separator(path, separator)
        first = first_line(text)
        HEADER.require(len(first), f"{path} begins with a line of")
        named = separator or kind.separator or _sniff_separator(first)
        single = named if len(named.encode()) == 1 else _stand_in(path, text)
        layout = cls(path, text.replace(named, single), single, named, kind.quote)
        BYTES.require((layout.text.count(single) + text.count("\n")) * CELL, f"{path} would take")
        line, fields = next(layout._all_records())
        COLUMNS.require(len(fields), f"{path} has so many columns:")
        if len(fields) < 2:
            raise ConfedError(
                f"{path}, line {line}: only one column with separator {named!r}: {fields[0][:80]!r}; "
                "name the right one with --separator"
            )
        header = kind.header if header is None else header
        header = _looks_like_header(fields) if header is None else header
        names = [name.strip() for name in fields] if header else [str(i + 1) for i in range(len(fields))]
        return replace(layout, header=header, names=names)

    def columns(self, places: Sequence[int]) -> list[pl.Series]:
        """The text of the columns at `places`, one value per record."""
        frame = self._fast()
        if frame is not None:
            return [self._as_written(frame.to_series(place)).alias(self.names[place]) for place in places]
        rows = [fields for _, fields in self.records()]
        if not rows:
            raise ConfedError(f"{self.path} has a header but no rows: expected one interaction per line")
        columns = (pl.Series(self.names[place], [fields[place] for fields in rows], pl.String) for place in places)
        return [self._as_written(column) for column in columns]

    def _as_written(self, column: pl.Series) -> pl.Series:
        """A separator between quotation marks is part of a value."""
        if self.separator == self.written:
            return column
        return column.str.replace_all(self.separator, self.written, literal=True)

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


def _require_separator(path: Path, separator: str | None) -> None:
    if separator is not None and (not separator or re.search('["\r\n\0\ud800-\udfff]', separator)):
        raise ConfedError(
            f"{path}: fields cannot be separated by {separator[:40]!r} (--separator), nor by anything with quotation "
            "marks or ends of lines in it; name what stands between them, such as ';'"
        )


def _stand_in(path: Path, text: str) -> str:
    """A sign that the text does not have."""
    free = next((sign for sign in _STAND_INS if sign not in text), None)
    if free is None:
        raise ConfedError(f"{path}: holds control characters of every kind; remove them, or separate fields by commas")
    return free


def _sniff_separator(first: str) -> str:
    return next((separator for separator in ("\t", "::", ",", ";", "|") if separator in first), " ")


def _looks_like_header(fields: Sequence[str]) -> bool:
    """Data has a number or a date behind the two ids, or is nothing but two ids of which one at least is a number."""
    return not any(_is_number(text) or is_date(text) for text in (fields[2:] or fields))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_text(text: Text, kind: Format, given: Mapping[str, str], date_order: DateOrder | None) -> Table:
    places = _places(text, kind, given)
    if kind is FORMATS["lastfm"] and "timestamp" not in places and "month" in text.names:
        raise ConfedError(
            f"{text.path} has days, months and years instead of time stamps: read "
            "user_taggedartists-timestamps.dat from the same archive"
        )
    columns = dict(zip(places, text.columns(list(places.values())), strict=True))
    table = typed(columns, text.names, text.where, date_order)
    if kind.finish is None:
        return table
    frame = kind.finish(table.frame)
    if frame.height == 0:
        raise ConfedError(f"{text.path}: no row has a {text.names[places['rating']]} above 0")
    return replace(table, frame=frame)


def _places(text: Text, kind: Format, given: Mapping[str, str]) -> dict[str, int]:
    if text.header:
        fixed = {role: name for role, name in kind.columns.items() if name in text.names}
        return places_by_name(text.names, {**fixed, **given}, str(text.path), header=kind.header is None)
    _, first = next(text.records())
    dated = len(first) > 2 and is_date(first[2])
    return places_by_number(text.names, given, str(text.path), ("user", "item", "timestamp") if dated else ROLES)
