"""What `confed methods` says of each method, in a line: written down, because asking the methods would load them all.

    python -m confed.methods.listing        # after a method was added, or says otherwise what it is

A test holds the file against the methods.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confed.methods.registry import METHODS, methods_elsewhere

if TYPE_CHECKING:
    from confed.methods.base import Method

FILE = Path(__file__).with_suffix(".json")


def listing() -> tuple[list[dict[str, Any]], list[str]]:
    """Name, kind, title, rounds and citation of every method; and what is wrong with those of other packages."""
    elsewhere, problems = methods_elsewhere()
    return [*json.loads(FILE.read_text("utf-8")), *map(_line, elsewhere.values())], problems


def ours() -> str:
    """The file as the methods would have it."""
    return json.dumps([_line(METHODS[name]) for name in METHODS], indent=1, ensure_ascii=False) + "\n"


def _line(method: Method) -> dict[str, Any]:
    return {key: getattr(method, key) for key in ("name", "kind", "title", "rounds", "citation")}


if __name__ == "__main__":
    FILE.write_text(ours(), "utf-8")
