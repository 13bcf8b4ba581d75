"""The foundation's evidence on MovieLens-100K: every method under both protocols, and why figures differ.

    python -m papers.foundation.recipe              # run what is missing (CONFED_DATA or a download)
    python -m papers.foundation.recipe --write      # write the tables into docs/protocols.md
    python -m papers.foundation.recipe --list       # the cells, and which are done

results.jsonl has a line for every cell. Three seeds; the standard deviation is over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confed.methods.published import published
from papers.cells import Cell, list_cells, load_results, pooled, run_cells
from papers.marks import rendered

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "protocols.md"
RESULTS = HERE / "results.jsonl"
DATASET = "ml-100k"
SEEDS = (0, 1, 2)

METHODS = ("popularity", "ease", "ials", "scalar", "local-only", "pfedrec", "fedmf", "fedncf", "mf", "neumf")
ROUNDS = {"local-only": 50}
"""Where fewer rounds than the method's own default are run."""
PATIENCE = {"mf": 20, "neumf": 15}
"""Epochs without a better validation metric after which the long central runs stop."""

EXPLANATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "fedmf": {
        "eta-1, 300 rounds": {"item_rate_factor": 1.0, "rounds": 300},
        "sum, 300 rounds": {"aggregation": "sum", "rounds": 300},
        "strict-pool": {"neg_pool": "untrained"},
    },
    "pfedrec": {
        "strict-pool": {"neg_pool": "untrained"},
        "2-epochs": {"local_epochs": 2},
        "saturating-bce": {"reproduction.saturating_bce": True},
    },
    "fedncf": {"strict-pool": {"neg_pool": "untrained"}},
}
"""By method, then by variant: options (and rounds) that change one thing, under `paper`, with the first seed."""


def cells() -> list[Cell]:
    """The main table, seed by seed, then the explanations."""
    main = [
        Cell(method, DATASET, protocol, seed, ROUNDS.get(method), settings={"patience": PATIENCE.get(method)})
        for seed in SEEDS
        for method in METHODS
        for protocol in ("paper", "strict")
    ]
    explained = [
        Cell(method, DATASET, "paper", SEEDS[0], changes.get("rounds"), variant, _without_rounds(changes))
        for method, variants in EXPLANATIONS.items()
        for variant, changes in variants.items()
    ]
    return main + explained


def _without_rounds(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name != "rounds"}


def main_table(results: Sequence[dict[str, Any]]) -> str:
    """Every method under both protocols, sampled and full ranking, beside the published figure."""
    lines = [
        "| method | view | `paper` | published | `paper`, full | `strict` | `strict`, full |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        of = {p: _select(results, method, p) for p in ("paper", "strict")}
        if not of["paper"] or not of["strict"]:
            continue
        own = of["strict"][0]["view"]
        for view in (own, *(v for v in of["strict"][0]["views"] if v != own)):
            paper, strict = ([_pair(of[p], view, prefix) for prefix in ("", "full_")] for p in ("paper", "strict"))
            row = [method if view == own else "", view, paper[0], _published(method) if view == own else ""]
            lines.append(f"| {' | '.join([*row, paper[1], *strict])} |")
    return "\n".join(lines)


def explanation_table(results: Sequence[dict[str, Any]]) -> str:
    """One change at a time, under `paper`."""
    lines = ["| method | change | HR@10 / NDCG@10 | published |", "|---|---|---|---|"]
    for method, variants in EXPLANATIONS.items():
        for variant in ("", *variants):
            found = [r for r in _select(results, method, "paper", variant) if r["seed"] == SEEDS[0]]
            if found:
                lines.append(f"| {method} | {variant or 'none'} | {_pair(found, None, '')} | {_published(method)} |")
    return "\n".join(lines)


TABLES = {
    "foundation/main": main_table,
    "foundation/explanations": explanation_table,
}


def write_tables(results: Sequence[dict[str, Any]]) -> None:
    """Put each table between its marks."""
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), TABLES, results), encoding="utf-8")


def _select(results: Sequence[dict[str, Any]], method: str, protocol: str, variant: str = "") -> list[dict[str, Any]]:
    wanted = (method, protocol, variant)
    return [r for r in results if (r["method"], r["protocol"], r["variant"]) == wanted]


def _pair(results: Sequence[dict[str, Any]], view: str | None, prefix: str) -> str:
    return f"{pooled(results, f'{prefix}hr@10', view)} / {pooled(results, f'{prefix}ndcg@10', view)}"


def _published(method: str) -> str:
    found = [p for p in published(method, DATASET) if p.ranking == "sampled"]
    return f"{found[0].hr:.2f} / {found[0].ndcg:.2f}" if found else "–"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m papers.foundation.recipe", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the tables into docs/protocols.md")
    parser.add_argument("--list", action="store_true", help="list the cells and stop")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="only these, so that two can run at once")
    chosen = parser.parse_args()
    wanted = [cell for cell in cells() if cell.seed in chosen.seeds]
    if chosen.list:
        list_cells(wanted, RESULTS)
    elif chosen.write:
        write_tables(load_results(RESULTS))
    else:
        run_cells(wanted, RESULTS)


if __name__ == "__main__":
    main()
