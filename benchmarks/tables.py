"""The tables and pictures of docs/speed.md that `make bench` measured: python -m benchmarks.tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from papers.marks import Table, rendered
from papers.rows import table

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "results.json", HERE.parent / "docs" / "speed.md"

Sections = Sequence[dict[str, Any]]
"""The one object of the result file: by section what was measured, and with which code."""


def load() -> Sections:
    return [json.loads(RESULTS.read_text("utf-8"))]


def oracle_table(sections: Sections) -> str:
    rows = []
    for row in measured(sections, "oracle"):
        ours, theirs, limit = row["confed"], row["oracle"], row["limit"]
        cells = [row["method"], f"{ours['cpu_seconds']:.3f}", f"{ours['seconds']:.3f}", f"{theirs['seconds']:.1f}"]
        cells += [f"{row['faster']:.0f}x", f"{row['than_old']['wall']:.1f}x"]
        cells += [f"{1000 * limit:.1f}", f"{ours['seconds'] / limit:.0f}x"] if limit else ["–", "–"]
        rows.append([*cells, f"{ours['peak_mb']:,.0f} / {theirs['peak_mb']:,.0f}"])
    head = [
        "method",
        "CPU s",
        "wall s",
        "oracle s",
        "faster",
        "than before",
        "limit, ms",
        "from it",
        "MB, ours / oracle",
    ]
    return table(head, rows)


def items_table(sections: Sections) -> str:
    rows = [[row["work"], f"{row['faster']:.1f}x"] for row in measured(sections, "items")]
    return table(["work", "faster than before"], rows)


def contrast_table(sections: Sections) -> str:
    rows = [
        [
            f"`{row['schedule']}`",
            f"{row['confed']['seconds']:.2f}",
            f"{row['oracle']['seconds']:.0f}",
            f"{row['faster']:.0f}x",
        ]
        for row in measured(sections, "contrast")
    ]
    return table(["one round of CoFedRec on ml-100k", "wall s", "oracle s, in every step", "ratio"], rows)


def growth_table(sections: Sections) -> str:
    rows = [
        [
            f"{row['users']:,}",
            f"{row['items']:,}",
            f"{row['seconds']:.2f}",
            f"{1e6 * row['seconds'] / row['users']:.0f}",
            f"{1000 * row['limit']:.0f}",
            f"{row['peak_mb']:,.0f}",
        ]
        for row in measured(sections, "growth")
    ]
    return table(["users", "items", "seconds a round", "µs a user", "limit, ms", "peak MB"], rows)


def picture(sections: Sections, along: str) -> str:
    """Seconds of a round against users or items, the other as in the first row, and the limit: a Mermaid chart."""
    rows = measured(sections, "growth")
    other = "items" if along == "users" else "users"
    shown = [row for row in rows if row[other] == rows[0][other]]
    lines = ["```mermaid", "xychart-beta", f'  title "PFedRec, {shown[0][other]:,} {other}: measured, and the limit"']
    lines.append(f'  x-axis "{along}" [{", ".join(str(row[along]) for row in shown)}]')
    lines.append(f'  y-axis "seconds a round" 0 --> {1.1 * max(row["seconds"] for row in shown):.2f}')
    lines += [f"  line [{', '.join(f'{row[name]:.4f}' for row in shown)}]" for name in ("seconds", "limit")]
    return "\n".join([*lines, "```"])


def measured(sections: Sections, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sections[0][name]["measured"]
    return found


TABLES: dict[str, Table] = {
    "bench/oracle": oracle_table,
    "bench/items": items_table,
    "bench/contrast": contrast_table,
    "bench/growth": growth_table,
    "bench/users": partial(picture, along="users"),
    "bench/growing items": partial(picture, along="items"),
}


def main() -> None:
    DOCS.write_text(rendered(DOCS.read_text("utf-8"), TABLES, load()), encoding="utf-8")


if __name__ == "__main__":
    main()
