"""The tables of docs/fed3cr.md, from the result files and the published figures: python -m papers.fed3cr.tables."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from confed.methods.fed3cr import VARIANTS
from confed.methods.published import published
from papers.cells import load_results
from papers.fed3cr.recipe import BACKBONES, FEDRAP, MAIN, PROTOCOLS, RESULTS, TRIALS, WEIGHTS
from papers.marks import rendered
from papers.rows import Result, pair, printed, table, when_lost

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "fed3cr.md"
PUBLISHED: Mapping[str, Mapping[str, Sequence[float]]] = tomllib.loads((HERE / "published.toml").read_text("utf-8"))


def select(
    results: Iterable[Result],
    variant: str,
    *,
    method: str = "fed3cr",
    protocol: str = "paper",
    dataset: str = "ml-100k",
) -> list[Result]:
    wanted = (method, variant, protocol, dataset)
    return [r for r in results if (r["method"], r["variant"], r["protocol"], r["dataset"]) == wanted]


def trials(results: Sequence[Result]) -> str:
    """What was searched, by HR@10 of the best round on validation data."""
    diverged = load_results(RESULTS, diverged=True)
    rows = []
    for name in TRIALS:
        shown = []
        for protocol in PROTOCOLS:
            found = select(results, f"trial {name}", protocol=protocol)
            lost = select(diverged, f"trial {name}", protocol=protocol)
            shown.append(f"{found[0]['validation']['hr@10']:.2f}" if found else "diverged" if lost else "–")
        rows.append([name, *shown])
    return table(["trial", *(f"`{protocol}`, validation HR@10" for protocol in PROTOCOLS)], rows)


def main_table(results: Sequence[Result]) -> str:
    rows = []
    for method in MAIN:
        found = [select(results, "", method=method, protocol=protocol) for protocol in PROTOCOLS]
        if any(found):
            seeds = str(max(len(f) for f in found))
            full = [pair(f, prefix="full_") for f in found]
            rows.append([method, seeds, *(pair(f) for f in found), *full, _rounds(found)])
    head = ["method", "seeds", *(f"`{p}`" for p in PROTOCOLS), *(f"`{p}`, all items" for p in PROTOCOLS)]
    return table([*head, "best rounds"], rows)


def _rounds(found: Sequence[Sequence[Result]]) -> str:
    return "; ".join(", ".join(str(r["best_round"]) for r in some) or "–" for some in found)


def starts(results: Sequence[Result]) -> str:
    """FedRAP under `paper`: what its start, its λ and its rate do."""
    diverged = load_results(RESULTS, diverged=True)
    rows = [["defaults: deviation 0.01, λ 0.005, item rate 1000", pair(select(results, "", method="fedrap")[:1])]]
    for variant in FEDRAP:
        lost = select(diverged, variant, method="fedrap")
        rows.append([variant, when_lost(lost[0]) if lost else pair(select(results, variant, method="fedrap"))])
    return table(["FedRAP, seed 0", "`paper`"], rows)


def variants(results: Sequence[Result]) -> str:
    """Table III."""
    rows = []
    for variant, parts in VARIANTS.items():
        found = [pair(select(results, variant, protocol=protocol)) for protocol in PROTOCOLS]
        marks = ["x" if part not in ("off", "none") else "–" for part in parts]
        rows.append([variant, *marks, printed(PUBLISHED["table III"].get(variant)), *found])
    head = ["variant", "ACE", "L_a", "L_o", "published, Douban-Book"]
    return table([*head, *(f"`{protocol}`, ml-100k" for protocol in PROTOCOLS)], rows)


def datasets(results: Sequence[Result]) -> str:
    rows = []
    shown = [r for r in results if r["dataset"] != "ml-100k"]
    for result in sorted(shown, key=lambda r: (r["dataset"], r["method"])):
        theirs = [p for p in published(result["method"], result["dataset"]) if p.source.startswith("Fed3CR")]
        figures = printed((theirs[0].hr, theirs[0].ndcg) if theirs else None)
        costs = f"{result['seconds_per_round']:.1f}", f"{result['peak_rss_mb']:.0f}"
        best = f"{result['best_round']} of {result['rounds']}"
        rows.append([result["dataset"], result["method"], best, pair([result]), figures, *costs])
    return table(["dataset", "method", "best round", "`paper`", "published", "seconds per round", "MB"], rows)


def course(results: Sequence[Result]) -> str:
    """HR@10 / NDCG@10 round by round, where a cell kept them."""
    rows = []
    for result in results:
        course = result["curve"][result["view"]] if "curve" in result else {"round": []}
        for place, number in enumerate(course["round"]):
            if number == 1 or number % 4 == 0:
                figures = printed((course["hr@10"][place], course["ndcg@10"][place]))
                rows.append([result["dataset"], f"`{result['protocol']}`", str(number), figures])
    return table(["dataset", "protocol", "round", "HR@10 / NDCG@10"], rows)


def sweep(paper_table: str, shown_as: Mapping[str, str]) -> Callable[[Sequence[Result]], str]:
    """A table of single cells under `paper`: the variants named, under the name shown."""

    def made(results: Sequence[Result]) -> str:
        rows = []
        for variant, shown in shown_as.items():
            found = select(results, variant)
            if found:
                theirs = printed(PUBLISHED.get(paper_table, {}).get(variant))
                rows.append([shown, theirs, pair(found), str(found[0]["best_round"])])
        return table(["", "published, Douban-Book", "`paper`, ml-100k", "best round"], rows)

    return made


def plug_ins(results: Sequence[Result]) -> str:
    """Figure 8: each method alone and with Fed3CR plugged in, 30 rounds."""
    rows = []
    for backbone in BACKBONES:
        alone = select(results, "30 rounds", method=backbone)
        variant = "30 rounds" if backbone == "fedmf" else f"on {backbone}"
        rows.append([backbone, pair(alone), pair(select(results, variant))])
    return table(["backbone", "alone", "with Fed3CR"], rows)


TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "fed3cr/search": trials,
    "fed3cr/main": main_table,
    "fed3cr/starts": starts,
    "fed3cr/variants": variants,
    "fed3cr/transfers": sweep(
        "table IV",
        {"C0": "none (C0)", "transfer consensus": "consensus", "transfer unified": "unified", "C1": "ACE (C1)"},
    ),
    "fed3cr/datasets": datasets,
    "fed3cr/course": course,
    "fed3cr/plug-ins": plug_ins,
    "fed3cr/constraints": sweep(
        "figure 4",
        {
            "C1, 30 rounds": "ACE alone",
            **{f"C1 and {term}": f"ACE and {term}" for term in ("La", "Ls", "Lc", "Lo", "L2", "Lm")},
        },
    ),
    "fed3cr/sensitivity": sweep(
        "figure 9",
        {
            "30 rounds": "defaults: β_a = β_o = 0.1, 3 layers",
            **{f"beta_a {weight}": f"β_a = {weight}" for weight in WEIGHTS},
            **{f"beta_o {weight}": f"β_o = {weight}" for weight in WEIGHTS},
            **{f"layers {layers}": f"{layers} layers" for layers in (2, 4)},
        },
    ),
}


def write_tables(path: Path = DOCS, results: Path = RESULTS) -> None:
    """Put each table between its marks in the docs."""
    path.write_text(rendered(path.read_text("utf-8"), TABLES, load_results(results)), encoding="utf-8")


if __name__ == "__main__":
    write_tables()
