"""Tables in documents: between `<!-- table: NAME -->` and `<!-- end -->`, written by the recipe that measured them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

Table = Callable[[Sequence[dict[str, Any]]], str]


def rendered(text: str, tables: Mapping[str, Table], results: Sequence[dict[str, Any]]) -> str:
    """`text` with every table that has its marks there made anew."""
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if marked.search(text):
            text = marked.sub(partial(_between, table(results)), text)
    return text


def _between(made: str, marks: re.Match[str]) -> str:
    return f"{marks[1]}\n{made}\n\n{marks[2]}"
