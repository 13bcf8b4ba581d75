"""The tables of docs/fppdm.md, from the result files and the published figures: python -m papers.fppdm.tables."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from confed.evaluation.significance import Difference, paired
from papers.cells import load_results, pooled, unpacked
from papers.fppdm.recipe import (
    ABLATION,
    ANSWERING,
    BASELINES,
    CLUSTERS,
    COLD,
    DATASETS,
    DEFAULT_WEIGHTS,
    LARGER,
    MAIN,
    PLANTED,
    RESULTS,
    SCORES,
    SYNTHETIC,
    TRIED,
    WEIGHTS,
    longer,
)
from papers.fppdm.recipe import larger as larger_cells
from papers.fppdm.users import Mask, Users, kept
from papers.marks import rendered
from papers.rows import Result, pair, printed, table

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "fppdm.md"
PUBLISHED: Mapping[str, Mapping[str, Sequence[float]]] = tomllib.loads((HERE / "published.toml").read_text("utf-8"))
DOMAINS = {
    "douban": ("book", "music"),
    "amazon-game-video": ("game", "video"),
    "amazon-cloth-sport": ("cloth", "sport"),
    "amazon-phone-elec": ("phone", "elec"),
    SYNTHETIC: ("a", "b", "c"),
}
HEADS = ("method", "seeds", "rounds")
CUTOFFS = (5, 10)
RANKINGS = {"99": "", "999": "neg999_", "all items": "full_"}
"""What a held-out item is ranked against, and how its figures are called."""
COLD_RANKINGS = {"999": "", "all items": "full_"}
PAIRS = (
    ("FPPDM", "FPPDM, alone"),
    ("FPPDM++", "FPPDM++, alone"),
    ("FPPDM++", "FPPDM"),
    ("FPPDM++", "FPPDM, alone"),
    ("FPPDM", "LightGCN, alone"),
    ("FPPDM", "FedGNN"),
    ("FedGNN", "LightGCN, alone"),
    ("FPPDM, alignment 0.02", "FPPDM, alone"),
    ("alignment 0.02", "FPPDM++, alone"),
    (longer("FPPDM"), longer("FPPDM, alone")),
    (longer("FPPDM++"), longer("FPPDM")),
    (longer("FPPDM++"), "LightGCN, alone"),
    *((name, "FPPDM") for name in SCORES),
)
SHOWN = {"alignment 0.02": "FPPDM++, alignment 0.02"}
"""A name that figure 4's own table need not say in full."""
EXCHANGES = (("FPPDM", "FPPDM, alone"), ("FPPDM++", "FPPDM++, alone"), ("FedGNN", "LightGCN, alone"))
"""With the other company, and without."""


def select(results: Iterable[Result], name: str, dataset: str, protocol: str = "warm") -> list[Result]:
    """One result for every seed there is."""
    wanted = (name, dataset, protocol)
    return [r for r in results if (r["variant"], r["dataset"], r["protocol"]) == wanted]


def first_seed(results: Iterable[Result], name: str, dataset: str) -> list[Result]:
    """The result of seed 0, or none: other seeds would make a row better founded than the rows beside it."""
    return [r for r in select(results, name, dataset) if r["seed"] == 0]


def of(domain: str, view: str | None = None) -> Callable[[Result], Mapping[str, float]]:
    """The figures of one domain in the round that its own validation chooses, as a company would choose it."""

    def values(result: Result) -> Mapping[str, float]:
        found: Mapping[str, float] = result["own_round"][view or result["view"]][domain]
        return found

    return values


def rows_of(
    results: Sequence[Result],
    names: Iterable[str],
    dataset: str,
    protocol: str = "warm",
    prefixes: Sequence[str] = ("",),
    cutoffs: Sequence[int] = (10,),
) -> list[list[str]]:
    """A row per method and view: name, seeds, rounds, and for every domain the figures under each ranking."""
    rows = []
    for name in names:
        found = select(results, name, dataset, protocol)
        for view in found[0]["views"] if found else ():
            shown = name if len(found[0]["views"]) == 1 else f"{name}, {view} view"
            figures = [
                pair(found, of(domain, view), prefix, at)
                for domain in DOMAINS[dataset]
                for prefix in prefixes
                for at in cutoffs
            ]
            rows.append([shown, str(len(found)), _rounds(found, view), *figures])
    return rows


def _rounds(results: Sequence[Result], view: str) -> str:
    """The rounds that were chosen, by domains and seeds, and how many were trained."""
    chosen = [values["round"] for result in results for values in result["own_round"][view].values()]
    return f"{_span(chosen)} of {_span([result['rounds'] for result in results])}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def main_table(dataset: str, prefix: str) -> Callable[[Sequence[Result]], str]:
    """Every method under one ranking, at 5 and at 10."""

    def made(results: Sequence[Result]) -> str:
        rows = rows_of(results, [*BASELINES, *MAIN], dataset, prefixes=(prefix,), cutoffs=CUTOFFS)
        return table([*HEADS, *_at_cutoffs(dataset)], rows)

    return made


def _at_cutoffs(*datasets: str) -> list[str]:
    return [f"{domain}, at {at}" for dataset in datasets for domain in DOMAINS[dataset] for at in CUTOFFS]


def published(results: Sequence[Result]) -> str:
    """HR / NDCG as printed, at 5 and at 10, on the domains we have."""
    domains = [domain for dataset in (*DATASETS, LARGER) for domain in DOMAINS[dataset]]
    rows = [
        [name, *(printed(PUBLISHED[d][name][k : k + 2]) for d in domains for k in (0, 2))] for name in PUBLISHED["book"]
    ]
    return table(["published", *_at_cutoffs(*DATASETS, LARGER)], rows)


def comparisons(results: Sequence[Result]) -> str:
    """Differences per user, paired, of the means over the seeds that both have; and what each seed says."""
    rows = []
    for dataset, domains in kept().items():
        for one, other in PAIRS:
            both = same_seeds(results, one, other, dataset)
            for domain, users in domains.items() if both[0] else ():
                cells = [_shown(difference(*both, domain, metric)) for metric in ("hr", "ndcg")]
                known = _short(difference(*both, domain, "hr", users.trained)) if _matters(users) else "–"
                seeds = ", ".join(f"{mean:+.1f}" for mean in by_seed(*both, domain, "hr"))
                rows.append([dataset, domain, f"{SHOWN.get(one, one)} − {other}", *cells, seeds, known])
    heads = ("HR@10", "NDCG@10", "HR@10 by seed", "HR@10, trained test items")
    return table(["data", "domain", "difference", *heads], rows)


def activity(results: Sequence[Result]) -> str:
    """What an exchange gives to users with few, some and many items of the domain, of test items that were trained."""
    rows = []
    for dataset, domains in kept().items():
        for domain, users in domains.items():
            for chosen in users.thirds():
                items = np.array(users.items)[chosen]
                cells = [
                    _short(difference(*both, domain, "hr", _within(chosen, users))) if both[0] else "–"
                    for both in (same_seeds(results, one, other, dataset) for one, other in EXCHANGES)
                ]
                rows.append([dataset, domain, f"{items.min()} to {items.max()}", str(chosen.sum()), *cells])
    heads = [f"{one} − {other}" for one, other in EXCHANGES]
    return table(["data", "domain", "items", "users", *heads], rows)


def _matters(users: Users) -> bool:
    return any(users.untrained.values())


def _within(chosen: Mask, users: Users) -> Callable[[int], Mask]:
    return lambda seed: chosen & users.trained(seed)


def same_seeds(results: Sequence[Result], one: str, other: str, dataset: str) -> tuple[list[Result], list[Result]]:
    """The results of both, for the seeds that both have."""
    ours, theirs = ({r["seed"]: r for r in select(results, name, dataset)} for name in (one, other))
    seeds = sorted(set(ours) & set(theirs))
    return [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]


def difference(
    one: Sequence[Result],
    other: Sequence[Result],
    domain: str,
    metric: str,
    counted: Callable[[int], Mask] | None = None,
) -> Difference:
    """Over users, each with the mean of the seeds in which it is `counted`; by default all of them."""
    values = _differences(one, other, domain, metric)
    mask = np.array([counted(r["seed"]) for r in one]) if counted else np.ones_like(values, dtype=bool)
    some = mask.any(axis=0)
    means = values[:, some].mean(axis=0, where=mask[:, some])
    return paired([means], [np.zeros_like(means)])


def by_seed(one: Sequence[Result], other: Sequence[Result], domain: str, metric: str) -> list[float]:
    """The mean over users, for every seed."""
    found: list[float] = _differences(one, other, domain, metric).mean(axis=1).tolist()
    return found


def _differences(one: Sequence[Result], other: Sequence[Result], domain: str, metric: str) -> NDArray[np.float64]:
    """(seeds, users), in percent, at the round that the mean of the domains chose, under each method's own view."""

    def per_user(result: Result) -> NDArray[np.float64]:
        ranks = unpacked(result["ranks"][result["view"]][domain])
        return 100 * ranks.per_user(metric, 10, "expected")

    return np.array([per_user(r) - per_user(o) for r, o in zip(one, other, strict=True)])


def _shown(found: Difference) -> str:
    chance = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    return f"{_short(found)}, {chance}"


def _short(found: Difference) -> str:
    return f"{found.mean:+.2f} ({found.low:+.2f} … {found.high:+.2f})"


def planted(results: Sequence[Result]) -> str:
    rows = rows_of(results, PLANTED, SYNTHETIC)
    return table([*HEADS, *(f"domain {d}" for d in DOMAINS[SYNTHETIC])], rows)


def groups(results: Sequence[Result]) -> str:
    """How well co-clustering a domain's users finds who was planted together."""
    rows = []
    for name in PLANTED:
        found = select(results, name, SYNTHETIC)
        if found:
            means = [pooled([r["agreement"] for r in found], domain) for domain in DOMAINS[SYNTHETIC]]
            rows.append([name, str(len(found)), *means])
    return table(["method", "seeds", *(f"domain {d}" for d in DOMAINS[SYNTHETIC])], rows)


def side_by_side(names: Sequence[str]) -> Callable[[Sequence[Result]], str]:
    """Some methods on both data sets, against 99 items, each under its own view."""

    def made(results: Sequence[Result]) -> str:
        rows = []
        for name in names:
            found = {dataset: select(results, name, dataset) for dataset in DATASETS}
            if any(found.values()):
                seeds = " and ".join(str(len(of)) for of in found.values())
                rows.append([name, seeds, *(pair(found[data], of(d)) for data in DATASETS for d in DOMAINS[data])])
        return table(["", "seeds", *(d for data in DATASETS for d in DOMAINS[data])], rows)

    return made


def ablation(results: Sequence[Result]) -> str:
    names = [*(f"FPPDM++ ({v})" for v in ABLATION), "FPPDM", "FPPDM++"]
    return _one_seed(results, "variant", {name: name for name in names})


def tried(results: Sequence[Result]) -> str:
    return _one_seed(results, "FPPDM, alone", {f"tried, {name}": name for name in TRIED})


def _one_seed(results: Sequence[Result], head: str, named: Mapping[str, str]) -> str:
    """Single cells on amazon-game-video, under the names that are shown."""
    rows = [
        [shown, *(pair(found, of(d)) for d in DOMAINS["amazon-game-video"])]
        for variant, shown in named.items()
        if (found := first_seed(results, variant, "amazon-game-video"))
    ]
    return table([head, *DOMAINS["amazon-game-video"]], rows)


def sweep(named: Mapping[str, str], paper_table: str = "") -> Callable[[Sequence[Result]], str]:
    """Single cells on Douban, the mean of the domains and each of them; of figures there are no published numbers."""

    def made(results: Sequence[Result]) -> str:
        rows = []
        for variant, shown in named.items():
            found = first_seed(results, variant, "douban")
            if found:
                theirs = [f"{PUBLISHED[paper_table][shown][2]:.2f}"] if paper_table else []
                mean = np.mean([[of(d)(found[0])[m] for m in ("hr@10", "ndcg@10")] for d in DOMAINS["douban"]], axis=0)
                ours = [printed(list(mean)), *(pair(found, of(d)) for d in DOMAINS["douban"])]
                rows.append([shown, *theirs, *ours])
        published = ["published HR@10, three domains"] if paper_table else []
        return table(["", *published, "mean of both", *DOMAINS["douban"]], rows)

    return made


def weights(option: str) -> dict[str, str]:
    symbol = {"alignment": "λ_P", "clustering": "λ_C"}[option]
    default = DEFAULT_WEIGHTS[option]
    return {("FPPDM++" if w == default else f"{option} {w}"): f"{symbol} = {w}" for w in WEIGHTS}


def cold(dataset: str, names: Iterable[str], prefix: str) -> Callable[[Sequence[Result]], str]:
    """Users who are new to a domain, under one ranking, at 5 and at 10."""

    def made(results: Sequence[Result]) -> str:
        rows = rows_of(results, names, dataset, "cold", prefixes=(prefix,), cutoffs=CUTOFFS)
        return table([*HEADS, *_at_cutoffs(dataset)], rows)

    return made


def larger(results: Sequence[Result]) -> str:
    """By data and method, in the order of the recipe."""
    rows = []
    for dataset, name in dict.fromkeys((cell.dataset, cell.variant) for cell in larger_cells()):
        found = select(results, name, dataset)
        for domain in DOMAINS[dataset] if found else ():
            figures = [pair(found, of(domain), prefix, at) for prefix in RANKINGS.values() for at in CUTOFFS]
            costs = [f"{max(result[cost] for result in found):.0f}" for cost in ("seconds_per_round", "peak_rss_mb")]
            rows.append([dataset, name, str(len(found)), _rounds(found, found[0]["view"]), domain, *figures, *costs])
    rankings = [f"{ranking}, at {at}" for ranking in RANKINGS for at in CUTOFFS]
    return table(["data", *HEADS, "domain", *rankings, "seconds per round", "MB"], rows)


TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "fppdm/published": published,
    **{
        f"fppdm/{dataset}, {ranking}": main_table(dataset, prefix)
        for dataset in DATASETS
        for ranking, prefix in RANKINGS.items()
    },
    "fppdm/comparisons": comparisons,
    "fppdm/activity": activity,
    "fppdm/planted": planted,
    "fppdm/groups": groups,
    "fppdm/scores": side_by_side(("FPPDM", *SCORES, "LightGCN, alone")),
    "fppdm/couplings": side_by_side(("FPPDM++, coupling 0", "FPPDM++", "FPPDM++, coupling 1.7")),
    "fppdm/ablation": ablation,
    "fppdm/clusters": sweep(
        {("FPPDM++" if m == 15 else f"M = {m}"): f"M = {m}" for m in sorted({*CLUSTERS, 15})}, "table 4"
    ),
    "fppdm/alignment": sweep(weights("alignment")),
    "fppdm/clustering": sweep(weights("clustering")),
    "fppdm/tried": tried,
    **{
        f"fppdm/cold, {dataset}, {ranking}": cold(dataset, names, COLD_RANKINGS[ranking])
        for dataset, names in {"amazon-game-video": COLD, LARGER: ANSWERING}.items()
        for ranking in COLD_RANKINGS
    },
    "fppdm/larger": larger,
}


def write_tables(path: Path = DOCS, results: Path = RESULTS) -> None:
    """Put each table between its marks in the docs."""
    path.write_text(rendered(path.read_text("utf-8"), TABLES, load_results(results)), encoding="utf-8")


if __name__ == "__main__":
    write_tables()
