"""JSON lines: one object a line, its keys the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from confed.data.dates import DateOrder
from confed.data.values import Table, from_frame
from confed.errors import ConfedError


def read_json_lines(path: Path, text: str, given: Mapping[str, str], date_order: DateOrder | None) -> Table:
    """What the objects of `text` say; where polars stumbles, line by line to find out why."""
    try:
        frame = pl.read_ndjson(text.encode(), infer_schema_length=None)
    except pl.exceptions.PolarsError:
        frame = _as_text(list(_objects(path, text)))

    def where(row: int) -> str:
        return f"{path}, line {[number for number, _ in _lines(text)][row]}"

    return from_frame(frame, given, date_order, str(path), where)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """With their numbers, without blank ones. Only a line feed ends a line: a text may hold other separators."""
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _objects(path: Path, text: str) -> Iterator[dict[str, Any]]:
    for number, line in _lines(text):
        try:
            found, reason = json.loads(line), "not an object"
        except json.JSONDecodeError as error:
            found, reason = None, f"not JSON ({error.msg}, column {error.colno})"
        if not isinstance(found, dict):
            raise ConfedError(
                f"{path}, line {number}: {reason}; every line must be an object such as "
                '{"user": 1, "item": 2}, and an array has to be written as such lines'
            )
        yield found


def _as_text(objects: list[dict[str, Any]]) -> pl.DataFrame:
    """For columns in which values of several types meet."""
    names = dict.fromkeys(name for found in objects for name in found)
    return pl.DataFrame(
        {name: [_written(found.get(name)) for found in objects] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )


def _written(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
