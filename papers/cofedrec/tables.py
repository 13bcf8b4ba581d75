"""The tables of docs/cofedrec.md, from the result files and the published figures: python -m papers.cofedrec.tables."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from confed.evaluation.significance import paired
from confed.methods.published import published
from confed.protocol import PROTOCOLS
from papers.cells import load_results, unpacked
from papers.cofedrec import recipe
from papers.cofedrec.recipe import (
    BACKBONES,
    CLUSTERS,
    NOISE,
    OURS,
    RESULTS,
    SEEDS,
    VARIANTS,
    WEIGHTS,
)
from papers.marks import rendered
from papers.rows import Result, pair, printed, table, when_lost

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "cofedrec.md"
PUBLISHED: Mapping[str, Mapping[str, Sequence[float]]] = tomllib.loads((HERE / "published.toml").read_text("utf-8"))

AFTER = "after the server's step"
SETTINGS = {
    "λ = 0.005, as printed": "full",
    "the same, with the published code's loss": "full, saturating",
    f"λ = {OURS}, our default": f"contrast {OURS}",
}
_DRAWS = 10_000


def select(results: Iterable[Result], variant: str, protocol: str = "paper", dataset: str = "ml-100k") -> list[Result]:
    wanted = ("cofedrec", variant, protocol, dataset)
    return [r for r in results if (r["method"], r["variant"], r["protocol"], r["dataset"]) == wanted]


def served(result: Result) -> str:
    """The view after the server's step: `pushed`, or `global` where everybody gets the mean."""
    return next(view for view in result["views"] if view != "local")


def own(view: Callable[[Result], str]) -> Callable[[Result], Mapping[str, float]]:
    """A view's metrics at the round that its own validation metric chooses."""
    return lambda result: result["own_round"][view(result)]


def published_in(paper_table: str, row: str) -> str:
    return printed(PUBLISHED[paper_table].get(row))


def ablations(results: Sequence[Result]) -> str:
    """Table 2: both protocols, both views, each view at the round its own validation metric chooses."""
    head = ["variant", "published"]
    head += [f"`{protocol}`, {view}" for protocol in ("paper", "strict") for view in ("local", AFTER)]
    rows = []
    for variant in VARIANTS:
        columns = [
            pair([r for r in select(results, variant, protocol) if r["seed"] in SEEDS], own(view))
            for protocol in ("paper", "strict")
            for view in (lambda r: "local", served)
        ]
        rows.append([variant, published_in("table 2", variant), *columns])
    return table(head, rows)


def spread(results: Sequence[Result]) -> str:
    """The whole method under `paper`: the printed weight, with the published code's loss, and ours; seeds and more."""
    rows = []
    for setting, variant in SETTINGS.items():
        every = select(results, variant)
        few = [r for r in every if r["seed"] in SEEDS]
        for found in [few] if len(few) == len(every) else [few, every]:
            if found:
                hits = [r["own_round"]["pushed"]["hr@10"] for r in found]
                columns = (pair(found, own(lambda r: "local")), pair(found, own(served)))
                seeds = f"{min(r['seed'] for r in found)} to {max(r['seed'] for r in found)}"
                rows.append([setting, seeds, *columns, f"{min(hits):.2f}, {max(hits):.2f}"])
    return table(["setting", "seeds", "local", "pushed", "pushed, lowest and highest HR@10"], rows)


def significance(results: Sequence[Result]) -> str:
    """Paired over users, seeds averaged, and always the same view on both sides."""
    head = ["difference", "protocol", *(f"{m}, {view}" for m in ("HR@10", "NDCG@10") for view in ("local", AFTER))]
    rows = []
    grown = [variant for variant in VARIANTS if not variant.startswith("origin")]
    contrasts = [(variant, "origin") for variant in grown]
    contrasts += [("full", "user-p"), ("full", "item-sc"), ("item-sc", "item-s")]
    for one, other in contrasts:
        for protocol in ("paper", "strict"):
            sides = [select(results, variant, protocol) for variant in (one, other)]
            if all(sides):
                cells = [
                    _difference(sides, view, metric, protocol)
                    for metric in ("hr", "ndcg")
                    for view in (lambda r: "local", served)
                ]
                rows.append([f"{one} − {other}", f"`{protocol}`", *cells])
    return table(head, rows)


def _difference(sides: Sequence[Sequence[Result]], view: Callable[[Result], str], metric: str, protocol: str) -> str:
    seeds = {r["seed"] for r in sides[0]} & {r["seed"] for r in sides[1]}
    ties = PROTOCOLS[protocol].rank_ties
    values = [
        [100 * unpacked(r["ranks"][view(r)]).per_user(metric, 10, ties) for r in side if r["seed"] in seeds]
        for side in sides
    ]
    found = paired(values[0], values[1], draws=_DRAWS)
    return f"{found.mean:+.2f} ({found.low:+.2f} to {found.high:+.2f}), p = {found.p:.3f}"


def schedules(results: Sequence[Result]) -> str:
    """Whole runs and short ones, on the seeds that both schedules have."""
    rows = []
    whole = ("full", "every-step")
    short = ("once-per-round, 20 rounds", "every-step, 20 rounds")
    for rounds, variants in (("100", whole), ("20", short)):
        runs = [select(results, variant) for variant in variants]
        seeds = {r["seed"] for r in runs[0]} & {r["seed"] for r in runs[1]}
        for name, some in zip(("once-per-round", "every-step"), runs, strict=True):
            found = [r for r in some if r["seed"] in seeds]
            if found:
                seconds = np.mean([r["seconds_per_round"] for r in found])
                columns = (pair(found, own(lambda r: "local")), pair(found, own(served)))
                rows.append([name, rounds, str(len(found)), *columns, f"{seconds:.1f}"])
    return table(["schedule", "rounds", "seeds", "local", "pushed", "seconds per round"], rows)


def group_rounds(results: Sequence[Result]) -> str:
    """Figure 2, and which rounds validation chooses."""
    head = ["seed", "mean share in the group", "in more than 70 of 100 rounds", "published", "chosen round (pushed)"]
    rows = []
    for result in select(results, "full"):
        rounds_in, sizes = np.array(result["rounds_in_group"]), np.array(result["group_sizes"])
        chosen = int(result["own_round"]["pushed"]["round"])
        share = 100 * sizes.mean() / len(rounds_in)
        often = 100 * (rounds_in > 0.7 * len(sizes)).mean()
        shares = f"{share:.1f} %", f"{often:.1f} %", f"{published_in('figure 2', 'ml-100k')} %"
        group = f"{sizes[chosen - 1]} of {len(rounds_in)}"
        rows.append([str(result["seed"]), *shares, str(chosen), group, f"{np.median(sizes):.0f}"])
    return table([*head, "group in that round", "median group"], rows)


def datasets(results: Sequence[Result]) -> str:
    """Table 1's row and table 9's, beside popularity where it was run."""
    head = ["dataset", "protocol", "method", "rounds", AFTER, "published", "local", "full ranking", "published"]
    whole = {cell.variant for cell in recipe.datasets()}
    shown = [r for r in results if r["seed"] == 0 and r["variant"] in whole]
    ordered = sorted(shown, key=lambda r: (r["dataset"], r["protocol"], r["method"]))
    return table([*head, "seconds per round", "MB"], [list(_dataset_row(result)) for result in ordered])


def _dataset_row(result: Result) -> Iterator[str]:
    own_round = "own_round" in result
    theirs = {p.ranking: f"{p.hr:.2f} / {p.ndcg:.2f}" for p in published(result["method"], result["dataset"])}
    known = theirs if result["protocol"] == "paper" else {}
    chosen = own(served) if own_round else lambda r: r
    yield from (result["dataset"], f"`{result['protocol']}`", result["method"], str(result["rounds"]))
    yield from (pair([result], chosen), known.get("sampled", "–"))
    yield pair([result], own(lambda r: "local")) if own_round else "–"
    yield from (pair([result], chosen, "full_"), known.get("full", "–"))
    yield from (f"{result['seconds_per_round']:.1f}", f"{result['peak_rss_mb']:.0f}")


def sweep(paper_table: str, shown_as: Mapping[str, str]) -> Callable[[Sequence[Result]], str]:
    """A table of single-seed cells: its rows are the variants named, under the name shown."""

    def made(results: Sequence[Result]) -> str:
        rows = []
        diverged = load_results(RESULTS, diverged=True)
        for variant, shown in shown_as.items():
            found = [r for r in select(results, variant) if r["seed"] == 0]
            figures = published_in(paper_table, variant) if paper_table in PUBLISHED else "–"
            if found:
                rows.append([shown, figures, pair(found, own(lambda r: "local")), pair(found, own(served))])
            rows += [[shown, figures, when_lost(result), "–"] for result in select(diverged, variant)]
        return table(["", "published", "local", AFTER], rows)

    return made


def _swept(name: str, values: Sequence[float], default: float, symbol: str) -> dict[str, str]:
    """Variant names by what they are shown as, in ascending order; the default is the whole method of table 2."""
    return {
        "full" if value == default else f"{name} {value}": f"{symbol} = {value}" for value in sorted((*values, default))
    }


TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "cofedrec/ablations": ablations,
    "cofedrec/significance": significance,
    "cofedrec/spread": spread,
    "cofedrec/schedules": schedules,
    "cofedrec/printed-form": sweep(
        "table 2",
        {
            "full": "the code's form, λ = 0.005",
            "supcon paper": "Eq. 8, λ = 0.005",
            "supcon paper, contrast 0.0001": "Eq. 8, λ = 0.0001",
        },
    ),
    "cofedrec/groups": group_rounds,
    "cofedrec/datasets": datasets,
    "cofedrec/plug-ins": sweep("table 3", {f"{b} {n}": f"{b}, {n}" for b in BACKBONES for n in ("control", "full")}),
    "cofedrec/noise": sweep(
        "table 4",
        {
            f"{variant}, {f'noise {ratio}' if ratio else 'saturating'}": f"{shown}, ratio {ratio}"
            for variant, shown in (("full", "CoFedRec"), ("origin", "backbone"))
            for ratio in (0, *NOISE)
        },
    ),
    "cofedrec/weights": sweep("table 8", _swept("contrast", WEIGHTS, 0.005, "λ")),
    "cofedrec/clusters": sweep("figure 4", _swept("clusters", CLUSTERS, 30, "K")),
}


def write_tables(path: Path = DOCS, results: Path = RESULTS) -> None:
    """Put each table between its marks in the docs."""
    path.write_text(rendered(path.read_text("utf-8"), TABLES, load_results(results)), encoding="utf-8")


if __name__ == "__main__":
    write_tables()
