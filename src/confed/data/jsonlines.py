"""JSON lines: one object a line, its keys the columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from confed.data.columns import places_by_name
from confed.data.dates import DateOrder
from confed.data.limits import BYTES, CELL, COLUMNS, DEPTH
from confed.data.values import Table, typed
from confed.errors import ConfedError


def read_json_lines(path: Path, text: str, given: Mapping[str, str], date_order: DateOrder | None) -> Table:
    """What the objects of `text` say; where polars stumbles, line by line to find out why."""
    _require_shallow(path, text)

    def where(row: int) -> str:
        return f"{path}, line {[number for number, _ in _lines(text)][row]}"

    try:
        lazy = pl.scan_ndjson(text.encode(), infer_schema_length=None)
        names = list(lazy.collect_schema())
        places = _places(path, text, names, given)
        frame = lazy.select(names[place] for place in places.values()).collect()
    except pl.exceptions.PolarsError:
        objects = list(_objects(path, text))
        names = list(dict.fromkeys(name for found in objects for name in found))
        places = _places(path, text, names, given)
        frame = _as_text(objects, [names[place] for place in places.values()])
    if frame.height == 0:
        raise ConfedError(f"{path} has no rows: there is nothing to read")
    _require_one_of_each(path, text, frame)
    return typed({role: frame[names[place]] for role, place in places.items()}, names, where, date_order)


def _places(path: Path, text: str, names: list[str], given: Mapping[str, str]) -> dict[str, int]:
    COLUMNS.require(len(names), f"{path} has so many different keys:")
    places = places_by_name(names, given, str(path))
    BYTES.require((text.count("\n") + 1) * len(places) * CELL, f"{path} would take")
    return places


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """With their numbers, without blank ones. Only a line feed ends a line: a text may hold other separators."""
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _objects(path: Path, text: str) -> Iterator[dict[str, Any]]:
    for number, line in _lines(text):
        try:
            found, reason = json.loads(line, object_pairs_hook=_single), "not an object"
        except json.JSONDecodeError as error:
            found, reason = None, f"not JSON ({error.msg}, column {error.colno})"
        except (ValueError, RecursionError) as error:
            found, reason = None, str(error)
        if not isinstance(found, dict):
            raise ConfedError(
                f"{path}, line {number}: {reason}; every line must be an object such as "
                '{"user": 1, "item": 2}, and an array has to be written as such lines'
            )
        yield found


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, whose keys must all be different."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice in an object")
    return found


def _as_text(objects: list[dict[str, Any]], names: list[str]) -> pl.DataFrame:
    """For columns in which values of several types meet."""
    return pl.DataFrame(
        {name: [_written(found.get(name)) for found in objects] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )


def _written(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


# --- what parsers do not refuse ---------------------------------------------------------------------------------


def _require_one_of_each(path: Path, text: str, frame: pl.DataFrame) -> None:
    """polars takes the first of two keys that are alike. A key that is written more often than there are rows may be
    such a one, or stand deeper: only then every line is looked at.
    """
    keys = (re.escape(json.dumps(name, ensure_ascii=False)) for name in frame.columns)
    if any(sum(1 for _ in re.finditer(rf"{key}\s*:", text)) > frame.height for key in keys):
        for _ in _objects(path, text):
            pass


def _require_shallow(path: Path, text: str) -> None:
    """Parsers call themselves for every bracket within another."""
    most = DEPTH.most
    suspicious = re.compile(rf"[\[{{](?:[^\n\[{{]*[\[{{]){{{most}}}")
    start = 0
    while found := suspicious.search(text, start):
        begin = text.rfind("\n", 0, found.start()) + 1
        start = text.find("\n", found.end())
        line = text[begin : start if start >= 0 else len(text)]
        DEPTH.require(
            _depth(line), f"{path}, line {text.count(chr(10), 0, begin) + 1} has so many brackets in each other:"
        )
        if start < 0:
            return


def _depth(line: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", line)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest
