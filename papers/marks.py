"""Tables in documents: between `<!-- table: NAME -->` and `<!-- end -->`, written by the recipe that measured them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Table = Callable[[Sequence[dict[str, Any]]], str]


def rendered(text: str, tables: Mapping[str, Table], results: Sequence[dict[str, Any]]) -> str:
    """`text` with every table that has its marks there made anew."""
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if marked.search(text):
            made = table(results)
            text = marked.sub(lambda m, made=made: f"{m[1]}\n{made}\n\n{m[2]}", text)
    return text
