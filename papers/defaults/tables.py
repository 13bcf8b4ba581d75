"""The tables of docs/defaults.md, from the result file: python -m papers.defaults.tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from confed.methods.rates import PAPERS
from papers.cells import load_results
from papers.defaults.recipe import DATASETS, FILES, LEARNED, OTHERS, RESULTS, SKEWED, TRIED, after_cell
from papers.marks import Table, rendered
from papers.rows import Result, pair, table

DOCS = Path(__file__).parent.parent.parent / "docs" / "defaults.md"


def title(dataset: str) -> str:
    """Of a file its folder and domain, of a made-up dataset its shape."""
    if dataset in FILES:
        folder, _, file = dataset.partition("/")
        domain = file.removeprefix("interactions_").removesuffix(".csv.gz")
        return f"{folder}, {domain}, users with {FILES[dataset][0]}"
    _, made_up, shape = dataset.partition("synthetic:")
    if not made_up:
        return dataset
    told = dict(part.split("=") for part in shape.split(","))
    words = f"{told['users']} users, {told['items']} items, {told['interactions_per_user']} each"
    return f"synthetic, {words}, skew {told.get('skew', '1')}"


def select(results: Iterable[Result], method: str, dataset: str, variant: str) -> list[Result]:
    wanted = (method, dataset, variant)
    return [r for r in results if (r["method"], r["dataset"], r["variant"]) == wanted]


def factor(result: Result) -> float:
    """η as the run had it."""
    return float(result["provenance"]["settings"]["method_options"]["item_rate_factor"])


def main_table(results: Sequence[Result]) -> str:
    """HR@10 / NDCG@10 on test items, with the papers' η and with the one that follows from the data."""
    rows = []
    for dataset in DATASETS:
        row = [title(dataset), *(pair(select(results, method, dataset, "")) for method in ("popularity", "ease"))]
        for method in LEARNED:
            row += _before_and_after(results, method, dataset)
        rows.append(row)
    head = [part for method in LEARNED for part in (f"{method}, η = {PAPERS:g}", f"{method}, by the rule")]
    return table(["data", "popularity", "ease", *head], rows)


def _before_and_after(results: Sequence[Result], method: str, dataset: str) -> list[str]:
    before = select(results, method, dataset, _at(PAPERS))
    after = select(results, method, dataset, after_cell(method, dataset).variant)
    shown = f"{pair(after)} ({factor(after[0]):g})" if after else "–"
    return [pair(before), shown]


def grid_table(method: str, results: Sequence[Result]) -> str:
    """HR@10 on validation items of the best round, with its number; the rule's own at the end. Only data with cells."""
    factors = sorted({PAPERS, *(value for tried in TRIED[method].values() for value in tried)})
    rows = []
    for dataset in DATASETS:
        cells = [_on_validation(select(results, method, dataset, _at(value))) for value in factors]
        own = select(results, method, dataset, after_cell(method, dataset).variant)
        if not own and set(cells) == {"–"}:
            continue
        line = _on_validation(select(results, "popularity", dataset, ""), rounds=False)
        rows.append([title(dataset), line, *cells, f"{_on_validation(own)}, η = {factor(own[0]):g}" if own else "–"])
    return table(["data", "popularity", *(f"η = {value:g}" for value in factors), "the rule"], rows)


def others_table(results: Sequence[Result]) -> str:
    """HR@10 / NDCG@10 on test items, and the best round."""
    found = [r for r in results if r["dataset"] == SKEWED]
    order = sorted(found, key=lambda r: (list(OTHERS).index(r["method"]), r["variant"]))
    rows = [[_named(r), pair([r]), f"{r['best_round']} of {r['rounds']}"] for r in order]
    return table(["method", "HR@10 / NDCG@10", "best round"], rows)


def _named(result: Result) -> str:
    return f"{result['method']}, {result['variant']} of its item rate" if result["variant"] else str(result["method"])


def _at(value: float) -> str:
    return f"eta {value:g}"


def _on_validation(found: Sequence[Result], *, rounds: bool = True) -> str:
    if not found:
        return "–"
    shown = f"{found[0]['validation']['hr@10']:.1f}"
    return f"{shown} in {found[0]['best_round']}" if rounds else shown


TABLES: dict[str, Table] = {
    "defaults/main": main_table,
    **{f"defaults/{method}": partial(grid_table, method) for method in LEARNED},
    "defaults/others": others_table,
}


def main() -> None:
    DOCS.write_text(rendered(DOCS.read_text("utf-8"), TABLES, load_results(RESULTS)), encoding="utf-8")


if __name__ == "__main__":
    main()
