"""Parquet: columns by name, and in files of ours what four columns cannot say.

Before anything is unpacked the footer is asked how much it would be: a few kilobytes can hold gigabytes of zeros.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import polars as pl

from confed.data.boundary import in_our_words
from confed.data.catalogue import PseudoTime, Time
from confed.data.columns import places_by_name
from confed.data.contents import require_file
from confed.data.dates import DateOrder
from confed.data.limits import BYTES, CELL, COLUMNS
from confed.data.values import Table, typed
from confed.errors import ConfedError

METADATA_KEY = "confed"
"""Files of ours carry under this key what four columns cannot say (see `Interactions.save`)."""

_MAGIC = b"PAR1"


def read_parquet(path: Path, given: Mapping[str, str], date_order: DateOrder | None) -> Table:
    with in_our_words(str(path), "Parquet file", "write it again"):
        footer = _footer(path, require_file(path))
        # No pattern of file names, no folders that tell columns: a path is a file.
        lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        names = list(lazy.collect_schema())
        COLUMNS.require(len(names), f"{path} has so many columns:")
        places = places_by_name(names, given, str(path))
        used = [names[place] for place in places.values()]
        BYTES.require(footer.size(used), f"{path} would take")
        frame = lazy.select(used).collect()
        with path.open("rb") as file:
            told = pl.read_parquet_metadata(file).get(METADATA_KEY)
    if frame.height == 0:
        raise ConfedError(f"{path} is empty: it has columns but no rows")
    columns = {role: frame[names[place]] for role, place in places.items()}
    table = typed(columns, names, lambda row: f"{path}, row {row + 1}", date_order)
    return table if told is None else replace(table, **_about(path, told, table))


def _about(path: Path, told: str, table: Table) -> dict[str, Any]:
    """What `Interactions.save` wrote beside the columns."""
    try:
        about = json.loads(told)
        name, titles = about["name"], about["titles"]
        time, pseudo_time = about["time"], about["pseudo_time"]
        texts = [name, *titles, *titles.values()]
        sound = time in get_args(Time) and pseudo_time in get_args(PseudoTime) and all(map(_is_text, texts))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        sound = False
    if not sound or (time != "none" and "timestamp" not in table.frame.columns):
        raise ConfedError(
            f"{path}: what confed wrote beside the columns (metadata {METADATA_KEY!r}) is damaged; import the data "
            "again, or write the file without it"
        )
    return {"time": time, "name": name, "pseudo_time": pseudo_time, "titles": titles, "columns": {}}


def _is_text(value: object) -> bool:
    """A text without halves of characters."""
    return isinstance(value, str) and value.encode(errors="replace").decode() == value


# --- the footer -------------------------------------------------------------------------------------------------


class _Footer:
    """What a file says about itself: FileMetaData of the Parquet format, in Thrift's compact protocol."""

    _ROWS, _ROW_GROUPS, _CHUNKS, _META, _PATH, _UNPACKED = 3, 4, 1, 3, 3, 6

    def __init__(self, data: bytes) -> None:
        about = _Thrift(data).struct()
        self.rows: int = about[self._ROWS]
        metas = [chunk[self._META] for group in about[self._ROW_GROUPS] for chunk in group[self._CHUNKS]]
        self._unpacked: list[tuple[str, int]] = [(meta[self._PATH][0].decode(), meta[self._UNPACKED]) for meta in metas]

    def size(self, columns: list[str]) -> int:
        """The bytes that these columns take when they are unpacked."""
        packed_away = sum(size for column, size in self._unpacked if column in columns)
        return packed_away + self.rows * len(columns) * CELL


def _footer(path: Path, size: int) -> _Footer:
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if len(end) < 8 or end[4:] != _MAGIC or length > size - 8:
            raise ValueError("it does not end as a Parquet file does")
        file.seek(size - 8 - length)
        data = file.read(length)
    try:
        return _Footer(data)
    except (LookupError, TypeError, AttributeError):
        raise ValueError("its footer is damaged") from None


class _Thrift:
    """As much of Thrift's compact protocol as it takes to read a struct as a mapping of field numbers."""

    _DEPTH = 32

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > self._DEPTH:
            raise IndexError
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (9, 10):
            return self._list(depth)
        if kind == 8:
            return self._take(self._number())
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (1, 2, 3):
            return self._byte()
        if kind == 7:
            return self._take(8)
        raise IndexError  # maps and the rest do not occur

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._number()
        if count > len(self._data):
            raise IndexError
        return [self._value(head & 15, depth) for _ in range(count)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)

    def _take(self, length: int) -> bytes:
        self._at += length
        if self._at > len(self._data):
            raise IndexError
        return self._data[self._at - length : self._at]
