"""Malformed files, by reader and by the column that is malformed, from a seed; and whether they are dealt with."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import xlsxwriter

from confed.data.columns import ROLES
from confed.data.interactions import Interactions
from confed.errors import ConfedError
from tests.faults import mutations, odd
from tests.faults.outcomes import Outcome

WHOLE = "whole"
"""What is malformed is no column but the file."""
ROWS = 8
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A file that somebody may try to read."""

    name: str
    """Reader, column and number: the same from the same seed."""
    reader: str
    column: str
    file: str
    data: bytes
    options: Mapping[str, Any] = field(default_factory=dict)
    items: frozenset[str] | None = None
    """Of rows in which nothing is malformed: if the file is read, with as many rows as were written, they are in it."""

    @property
    def digest(self) -> str:
        told = f"{self.reader} {self.file} {sorted(self.options.items())!r}".encode("utf-8", "backslashreplace")
        return hashlib.sha256(told + self.data).hexdigest()


# --- cases ------------------------------------------------------------------------------------------------------


def groups() -> list[tuple[str, str]]:
    """Every reader with every column that its files have, and with the file as a whole."""
    return [(name, column) for name, reader in READERS.items() for column in (*reader.columns, WHOLE)]


def cases(seed: int, each: int = 200) -> Iterator[Case]:
    """So many different cases of every group."""
    for reader, column in groups():
        yield from cases_of(seed, reader, column, each)


def cases_of(seed: int, reader: str, column: str, each: int = 200) -> Iterator[Case]:
    """Those of one group; the first are the same however many are asked for."""
    random = Random(f"{seed} {reader} {column}")
    known = set[str]()
    for number in itertools.count():
        made = READERS[reader].case(random, f"{seed}/{reader}/{column}/{number}", column)
        if made.digest not in known:
            known.add(made.digest)
            yield made
        if len(known) == each:
            return


def _good() -> list[Row]:
    return [
        {"user": f"u{row % 3}", "item": f"i{row}", "rating": row % 5 + 1, "timestamp": 1_700_000_000 + row}
        for row in range(ROWS)
    ]


@dataclass(frozen=True)
class Reader:
    """How files of one kind are made, and damaged."""

    name: str
    suffix: str
    write: Callable[[Random, list[Row], str | None], bytes]
    """From rows, the malformed column of which is named, to bytes."""
    columns: tuple[str, ...] = ROLES
    damages: tuple[mutations.Mutation, ...] = mutations.OF_TEXT
    inside: mutations.Mutation | None = None
    malformed: Callable[[Random], Any] = odd.text
    options: tuple[Mapping[str, Any], ...] = ({},)
    file: str = "case"
    by_cell: bool = True
    """Whether some cells are malformed, or the type of the whole column."""
    faithful: bool = False
    """Whether any value at all can be written so that it can be told from its neighbours."""

    def case(self, random: Random, name: str, column: str) -> Case:
        rows, items = _good(), None
        if column == WHOLE:
            data = self._damaged(random, self.write(random, rows, None))
            suffix = random.choice(_SUFFIXES) if random.random() < 0.1 else self.suffix
        else:
            alike, sample = self.malformed(random), random.sample(rows, random.choice((1, 2, ROWS)))
            sound = [row for row in rows if row not in sample] if self.by_cell else []
            items = frozenset(row["item"] for row in (sound if column == "item" else rows))
            for row in sample:
                row[column] = alike if random.random() < 0.5 else self.malformed(random)
            data, suffix = self.write(random, rows, column), self.suffix
        chosen = random.choice(self.options) if random.random() < 0.7 else random.choice(_OPTIONS)
        items = None if chosen or not self.faithful else items
        return Case(name, self.name, column, f"{self.file}{suffix}", data, chosen, items)

    def _damaged(self, random: Random, data: bytes) -> bytes:
        """Inside of what it is packed in, or from outside, once or more often."""
        if self.inside is not None and random.random() < 0.7:
            return self.inside(random, data)
        for _ in range(random.choice((1, 1, 2, 3))):
            data = random.choice(self.damages)(random, data) or b"\n"
        return data


_SUFFIXES = (
    ".csv",
    ".tsv",
    ".jsonl",
    ".json",
    ".xlsx",
    ".parquet",
    ".gz",
    ".csv.gz",
    ".dat",
    ".inter",
    ".bin",
    "",
    ".xls",
)
_OPTIONS: tuple[Mapping[str, Any], ...] = (
    {},
    *({"encoding": name} for name in ("latin-1", "utf-16", "utf-8-sig", "utf-7", "cp037", "punycode", "hex", "nul\0")),
    *({"separator": sign} for sign in (";", "::", "\t", "é", '"', "\n", "|", "\x1f")),
    *({"header": header} for header in (True, False)),
    *({role: name} for role in ROLES for name in ("user", "4", "nowhere", "")),
    *({"date_order": order} for order in ("dmy", "mdy")),
    *({"format": name} for name in ("csv", "tsv", "jsonl", "parquet", "excel", "movielens", "recbole", "tenrec")),
    *({"time": time} for time in ("real", "order", "none")),
)


# --- writers ----------------------------------------------------------------------------------------------------


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _quoted(separator: str) -> Callable[[Random, list[Row], str | None], bytes]:
    def write(random: Random, rows: list[Row], _: str | None) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, lineterminator=random.choice(("\n", "\n", "\r\n")))
        writer.writerow(_header(random, ROLES))
        writer.writerows([row.values() for row in rows])
        return _encoded(text.getvalue())

    return write


def _header(random: Random, names: tuple[str, ...]) -> list[str]:
    """Now and then with a name twice, empty, or strange."""
    header = list(names)
    if random.random() < 0.1:
        header[random.randrange(len(header))] = random.choice((header[0], "", odd.text(random), header[0].upper()))
    return header


def _plain(
    separator: str, *header: str, names: tuple[str, ...] = ROLES
) -> Callable[[Random, list[Row], str | None], bytes]:
    def write(random: Random, rows: list[Row], _: str | None) -> bytes:
        lines = [header] if header else []
        lines += [tuple(str(row[name]) if name in row else name for name in names) for row in rows]
        return _encoded("\n".join(map(separator.join, lines)) + random.choice(("", "\n")))

    return write


def _objects(random: Random, rows: list[Row], _: str | None) -> bytes:
    for row in random.sample(rows, random.choice((0, 0, 1))):
        del row[random.choice(ROLES)]
    lines = [json.dumps(row, ensure_ascii=random.random() < 0.5) for row in rows]
    return _encoded("\n".join(lines))


def _zipped(random: Random, rows: list[Row], column: str | None) -> bytes:
    return gzip.compress(_quoted(",")(random, rows, column), mtime=0)


def _workbook(random: Random, rows: list[Row], _: str | None) -> bytes:
    told = io.BytesIO()
    with xlsxwriter.Workbook(told, {"in_memory": True, "nan_inf_to_errors": True}) as book:
        book.set_properties({"created": _LONG_AGO})
        sheet = book.add_worksheet()
        for place, values in enumerate([_header(random, ROLES), *(row.values() for row in rows)]):
            for column, value in enumerate(values):
                sheet.write(place, column, _cell(value))
    return told.getvalue()


_LONG_AGO = pl.Series([0]).cast(pl.Datetime("us")).to_list()[0]


def _cell(value: Any) -> Any:
    """What Excel can take of it."""
    if isinstance(value, str):
        return "".join(sign for sign in value if sign.isprintable())[:1000].encode(errors="replace").decode()
    return str(value) if isinstance(value, list | dict) or (isinstance(value, int) and abs(value) > 10**15) else value


def _table(random: Random, rows: list[Row], column: str | None) -> pa.Table:
    arrays = {name: pl.Series([row[name] for row in rows], strict=False).to_arrow() for name in ROLES if name != column}
    if column is not None:
        arrays[column] = odd.arrow(random, ROWS)
    names = random.sample(list(arrays), len(arrays))
    values = [arrays[name] for name in names]
    if random.random() < 0.05:
        names.append(random.choice(names))
        values.append(values[0])
    table = pa.table(values, names=names)
    return table.slice(0, 0) if random.random() < 0.02 else table


def _parquet(random: Random, rows: list[Row], column: str | None) -> bytes:
    """As polars writes it, which has more types, or as Arrow does, which has other ways to pack."""
    write = _parquet_of_polars if random.random() < 0.6 else _parquet_of_arrow
    while True:
        try:
            return write(random, rows, column)
        except (pl.exceptions.PolarsError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue  # a type that Parquet does not have


_METADATA = ("", "{", "[]", '{"time": 3}', "{}", '{"time": "real", "name": "x", "titles": [], "pseudo_time": null}')


def _parquet_of_polars(random: Random, rows: list[Row], column: str | None) -> bytes:
    told, frame = io.BytesIO(), pl.DataFrame({name: [row[name] for row in rows] for name in ROLES if name != column})
    if column is not None:
        frame = frame.with_columns(odd.column(random, ROWS).alias(column))
    metadata = {"confed": random.choice(_METADATA)} if random.random() < 0.05 else None
    frame.write_parquet(told, compression=random.choice(("snappy", "zstd", "uncompressed")), metadata=metadata)
    return told.getvalue()


def _parquet_of_arrow(random: Random, rows: list[Row], column: str | None) -> bytes:
    told, packing = io.BytesIO(), random.choice(("none", "snappy", "zstd", "gzip", "lz4"))
    table = _table(random, rows, column)
    pq.write_table(table, told, compression=packing, use_dictionary=random.random() < 0.5, row_group_size=5)
    return told.getvalue()


def _stream(random: Random, rows: list[Row], column: str | None) -> bytes:
    """A table in memory: its bytes are Arrow's own, and sound."""
    table, told = _table(random, rows, column), io.BytesIO()
    with pa.ipc.new_stream(told, table.schema) as writer:
        writer.write_table(table)
    return told.getvalue()


_ALWAYS = ({},)
READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        Reader("csv", ".csv", _quoted(","), faithful=True),
        Reader("tsv", ".tsv", _quoted("\t"), faithful=True),
        Reader("jsonl", ".jsonl", _objects, malformed=odd.value, faithful=True),
        Reader("gz", ".csv.gz", _zipped, damages=mutations.OF_BINARY, inside=mutations.inside_of_gzip, faithful=True),
        Reader(
            "excel",
            ".xlsx",
            _workbook,
            damages=mutations.OF_BINARY,
            inside=mutations.inside_of_zip,
            faithful=True,
            malformed=odd.value,
        ),
        Reader("parquet", ".parquet", _parquet, damages=mutations.OF_BINARY, by_cell=False, faithful=True),
        Reader("arrow", "", _stream, options=({}, {"date_order": "dmy"}), by_cell=False, faithful=True),
        Reader("movielens", ".dat", _plain("::"), options=({}, {"format": "movielens"})),
        Reader("u.data", "", _plain("\t"), file="u.data"),
        Reader("recbole", ".inter", _plain("\t", "user_id:token", "item_id:token", "rating:float", "timestamp:float")),
        Reader(
            "lastfm",
            ".dat",
            _plain("\t", "userID", "artistID", "tagID", "timestamp", names=("user", "item", "7", "timestamp")),
            columns=("user", "item", "timestamp"),
        ),
        Reader(
            "listens",
            ".dat",
            _plain("\t", "userID", "artistID", "weight", names=("user", "item", "rating")),
            columns=("user", "item", "rating"),
        ),
        Reader(
            "tenrec",
            ".csv",
            _plain(",", "user_id", "item_id", "click", "gender", names=("user", "item", "rating", "0")),
            columns=("user", "item", "rating"),
        ),
    )
}


# --- outcomes ---------------------------------------------------------------------------------------------------


def outcome(case: Case, folder: Path) -> Outcome:
    """Held if the case becomes sound interactions, twice the same, or is refused with words that name the file."""
    source, label = _source(case, folder)
    try:
        data = Interactions.of(source(), notice=lambda _: None, **case.options)
        fault = unsound(data) or _lost(case, data)
        if (
            fault is None
            and Interactions.of(source(), notice=lambda _: None, **case.options).content_hash != data.content_hash
        ):
            fault = "read twice it is not the same"
        return Outcome(held=fault is None, how=fault or f"loaded: {data!r}")
    except ConfedError as error:
        named = label in error.message or label in str(error)
        return Outcome(held=named, how=f"refused: {error}" if named else f"the message does not name {label}: {error}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Rust's panics are no Exceptions
        return Outcome(held=False, how=f"{type(error).__module__}.{type(error).__name__}: {error}")


def _source(case: Case, folder: Path) -> tuple[Callable[[], Any], str]:
    """What to read, made anew every time, and what an error must call it."""
    if case.reader == "arrow" and case.column != WHOLE:
        return lambda: pa.ipc.open_stream(case.data).read_all(), "the data frame"
    path = folder / case.file
    path.write_bytes(case.data)
    return lambda: path, path.name


def unsound(data: Interactions) -> str | None:
    """What is wrong with interactions that were loaded, if anything."""
    frame = data.frame
    kinds = dict(zip(ROLES, (pl.String, pl.String, pl.Float64, pl.Int64), strict=True))
    faults = {
        "columns of other types": dict(frame.schema) != kinds,
        "no rows": frame.height == 0,
        "empty cells": frame.null_count().sum_horizontal().item() > 0,
        "empty ids": any((frame[role].str.strip_chars() == "").any() for role in ("user", "item")),
        "ids that are no text": any(not _is_text(one) for one in (*data.users, *data.items)),
        "ratings that are not finite": not frame["rating"].is_finite().all(),
        "indices of other lengths": {len(data.user_index), len(data.item_index)} != {frame.height},
        "indices that lead elsewhere": [data.users[place] for place in data.user_index] != frame["user"].to_list(),
        "ids that occur twice": len(set(data.users)) < data.n_users or len(set(data.items)) < data.n_items,
        "titles that are no text": not all(_is_text(one) for pair in data.titles.items() for one in pair),
    }
    if data.time != "none":
        faults["rows out of order"] = not np.all(np.diff(data.user_index) >= 0)
    return next((fault for fault, wrong in faults.items() if wrong), None)


def _lost(case: Case, data: Interactions) -> str | None:
    """Whether rows are missing, or more than there were."""
    if case.items is None:
        return None
    if len(data) != ROWS:
        return f"{ROWS} rows became {len(data)}"
    gone = case.items - set(data.items)
    return f"items that are gone: {sorted(gone)}" if gone else None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.encode(errors="replace").decode() == value
