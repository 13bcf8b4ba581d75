"""Results that another recipe has already: a run is a function of its settings, so nobody has to run it twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from papers.cells import Cell, settings_of
from papers.provenance import dumped
from papers.results import Results


class Recipe(Protocol):
    """Of a module of papers/."""

    RESULTS: Path

    def cells(self) -> list[Cell]: ...


def measured(cells: Iterable[Cell], recipes: Sequence[Recipe]) -> dict[str, dict[str, Any]]:
    """By name, the results of those cells that one of the recipes has run under another name."""
    wanted = {_key(cell): cell for cell in cells}
    found: dict[str, dict[str, Any]] = {}
    for recipe in recipes:
        stored = Results(recipe.RESULTS).read()
        for theirs in recipe.cells():
            ours = wanted.get(_key(theirs)) if theirs.name in stored else None
            if ours is not None:
                found[ours.name] = {**stored[theirs.name], "name": ours.name, "variant": ours.variant}
    return found


def _key(cell: Cell) -> str:
    return json.dumps(dumped(settings_of(cell)), sort_keys=True, default=str)
