"""The tables of docs/comparison.md and the README, from the result file: python -m papers.methods.tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from confed.methods.published import published
from confed.methods.registry import method_named
from papers.cells import load_results
from papers.marks import Table, rendered
from papers.methods.recipe import CONTROLS, COST, EXPLAINED, METHODS, RESULTS, measured_elsewhere, selected
from papers.rows import Result, pair, printed, table

ROOT = Path(__file__).parent.parent.parent
PAGES = (ROOT / "docs" / "comparison.md", ROOT / "README.md")


def main_table(results: Sequence[Result]) -> str:
    """MovieLens-100K: both protocols beside what was printed, what a round takes, and what travels."""
    rows = []
    for method in (*CONTROLS, *METHODS):
        of = {protocol: _found(results, method, "ml-100k", protocol) for protocol in ("paper", "strict")}
        one = next((r for found in of.values() for r in found), None)
        full = pair(of["strict"], prefix="full_")
        figures = [pair(of["paper"]), _printed(method, "ml-100k"), pair(of["strict"]), full]
        seconds = _cost(results, method, "ml-100k")[0]
        rows.append([method, one["view"] if one else "–", *figures, seconds, _traffic(one)])
    head = ["method", "view", "`paper`", "published", "`strict`", "`strict`, all items", "s a round", "MB up / down"]
    return table(head, rows)


def film_table(results: Sequence[Result]) -> str:
    """FilmTrust, one seed."""
    rows = [
        [
            method,
            pair(_found(results, method, "filmtrust", "paper")),
            _printed(method, "filmtrust"),
            pair(_found(results, method, "filmtrust", "strict")),
        ]
        for method in METHODS
    ]
    return table(["method", "`paper`", "published", "`strict`"], rows)


def cost_table(results: Sequence[Result]) -> str:
    """MovieLens-1M, three rounds: seconds a round, also in those of PFedRec, and the most memory."""
    rows = [[method, *_cost(results, method, "ml-1m")] for method in METHODS]
    return table(["method", "s a round", "times PFedRec", "MB"], rows)


def readme_table(results: Sequence[Result]) -> str:
    """The short form."""
    rows = []
    for method in (*CONTROLS, *METHODS):
        paper, strict = (_found(results, method, "ml-100k", protocol) for protocol in ("paper", "strict"))
        rows.append([method, pair(paper), _printed(method, "ml-100k"), pair(strict)])
    return table(["method", "`paper`", "published", "`strict`"], rows)


def explaining_table(results: Sequence[Result]) -> str:
    """What changes with other settings, under `paper`, seed 0."""
    rows = []
    for dataset, methods in EXPLAINED.items():
        for method, variants in methods.items():
            for variant in ("", *variants):
                found = selected(results, method, dataset=dataset, protocol="paper", variant=variant, seed=0)
                rows.append([dataset, method, variant or "as printed", pair(found), _printed(method, dataset)])
    return table(["dataset", "method", "what is changed", "HR@10 / NDCG@10", "published"], rows)


def _found(results: Sequence[Result], method: str, dataset: str, protocol: str) -> list[Result]:
    return selected(results, method, dataset=dataset, protocol=protocol, variant="")


def _printed(method: str, dataset: str) -> str:
    found = [p for p in published(method, dataset) if p.ranking == "sampled"]
    return printed((found[0].hr, found[0].ndcg)) if found else "–"


def _traffic(result: Result | None) -> str:
    """Of a client that takes part in a round."""
    if result is None or not method_named(result["method"]).has_clients:
        return "–"
    taken = result["participations"]
    return " / ".join(f"{result[name] / taken / 1e6:.2f}" for name in ("upload_bytes", "download_bytes"))


def _cost(results: Sequence[Result], method: str, dataset: str) -> list[str]:
    """Seconds a round, how many times those of PFedRec, MB."""
    found, measure = (selected(results, name, dataset=dataset, variant=COST) for name in (method, "pfedrec"))
    if not found or not measure:
        return ["–", "–", "–"]
    seconds, unit = found[0]["seconds_per_round"], measure[0]["seconds_per_round"]
    times = seconds / unit
    return [f"{seconds:.2f}", f"{times:.0f}" if times >= 10 else f"{times:.1f}", f"{found[0]['peak_rss_mb']:,.0f}"]


TABLES: dict[str, Table] = {
    "methods/main": main_table,
    "methods/filmtrust": film_table,
    "methods/cost": cost_table,
    "methods/readme": readme_table,
    "methods/explaining": explaining_table,
}


def all_results() -> list[Result]:
    """Of this recipe, and of those that measured some of its cells before."""
    own = load_results(RESULTS)
    names = {result["name"] for result in own}
    return [*own, *(result for name, result in measured_elsewhere().items() if name not in names)]


def main() -> None:
    results = all_results()
    for page in PAGES:
        page.write_text(rendered(page.read_text("utf-8"), TABLES, results), encoding="utf-8")


if __name__ == "__main__":
    main()
