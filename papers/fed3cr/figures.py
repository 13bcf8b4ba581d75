"""The paper's pictures from runs of our own.

    python -m papers.fed3cr.figures --out pictures     # ml-100k, seed 0, 30 rounds, `paper`; resumes

pictures/fed3cr.html and the other reports hold figures 6 (overlap of the two views), 7 (correlation of their features)
and the degradation of section III; figure-4.html, figure-8.html and figure-9.html are drawn from the results of the
recipe. data/ holds the numbers that are quoted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

import confed
from confed.analysis.clients import drift, two_scores
from confed.analysis.correlation import feature_correlation
from confed.analysis.degradation import degradation
from confed.analysis.overlap import view_overlap
from confed.analysis.style import figure
from confed.files import written_beside
from confed.report import write_report
from papers.cells import Cell, kept_run, load_results
from papers.fed3cr.recipe import BACKBONES, RESULTS, WEIGHTS
from papers.fed3cr.tables import select
from papers.rows import Result

HERE = Path(__file__).parent
DATA = HERE / "data"
ROUNDS = 30
CLIENT = 22
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "fed3cr": ("fed3cr", {}),
    "fed3cr-L2": ("fed3cr", {"complementarity": "L2"}),
    "fedrap": ("fedrap", {}),
    "pfedrec": ("pfedrec", {}),
}


def measures(run: confed.Run) -> dict[str, Any]:
    """What figures 6 and 7 and section III say of a run, in numbers."""
    found: dict[str, Any] = {"round": run.summary["best_round"], "hr@10": run.summary["hr@10"]}
    scores = two_scores(run)
    if scores:
        overlap = view_overlap(scores)
        found["overlap"] = {"mean": overlap.mean, "deviation": float(overlap.values.std())}
    replay = run.replay([CLIENT])
    tables = replay.two_tables() if replay else None
    if tables:
        correlation = feature_correlation(tables[0][0], tables[1][0], CLIENT)
        found["correlation"] = {"client": CLIENT, "share_above": correlation.above}
    distance = drift(run)
    if distance is not None:
        found["degradation"] = {
            "rank_correlation": degradation(distance.numpy(), run.training_items()).rank_correlation,
            "mean_distance": float(distance.mean()),
        }
    return found


def bars(results: list[Result], named: dict[str, str], title: str) -> go.Figure:
    """HR@10 of the variants named, as far as they were run."""
    shown = {name: select(results, variant) for variant, name in named.items()}
    present = {name: found[0]["hr@10"] for name, found in shown.items() if found}
    return figure([go.Bar(x=list(present), y=list(present.values()))], title, "", "HR@10")


def figure_8(results: list[Result]) -> go.Figure:
    alone = [select(results, "30 rounds", method=backbone) for backbone in BACKBONES]
    plugged = [select(results, "30 rounds" if b == "fedmf" else f"on {b}") for b in BACKBONES]
    traces = [
        go.Bar(name=name, x=list(BACKBONES), y=[found[0]["hr@10"] if found else None for found in some])
        for name, some in (("alone", alone), ("with Fed3CR", plugged))
    ]
    return figure(traces, "Fed3CR plugged into four methods, ml-100k, `paper`", "", "HR@10")


def drawn(results: list[Result]) -> dict[str, go.Figure]:
    terms = ("La", "Ls", "Lc", "Lo", "L2", "Lm")
    swept = {f"beta_{which} {w}": f"β_{which} = {w}" for which in "ao" for w in WEIGHTS}
    layers = {f"layers {n}": f"{n} layers" for n in (2, 4)}
    constraints = {"C1, 30 rounds": "ACE alone"} | {f"C1 and {t}": f"ACE and {t}" for t in terms}
    of = "ml-100k, `paper`"
    return {
        "figure-4": bars(results, constraints, f"Constraints on top of ACE, {of}"),
        "figure-8": figure_8(results),
        "figure-9": bars(results, {**swept, "30 rounds": "defaults", **layers}, f"β_a, β_o and layers, {of}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m papers.fed3cr.figures", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="ml-100k", help="of the reports; figures 4, 8 and 9 are the recipe's")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="runs and pages")
    chosen = parser.parse_args()
    found: dict[str, Any] = {"dataset": chosen.dataset, "protocol": "paper", "seed": 0, "rounds": ROUNDS}
    for name, (method, options) in RUNS.items():
        run = kept_run(Cell(method, chosen.dataset, "paper", 0, ROUNDS, name, options), chosen.out / name)
        found[name] = measures(run)
        write_report(run, chosen.out / f"{name}.html")
    for name, picture in drawn(load_results(RESULTS)).items():
        picture.write_html(chosen.out / f"{name}.html", include_plotlyjs=True)
    DATA.mkdir(exist_ok=True)
    with written_beside(DATA / f"{chosen.dataset}.json") as beside:
        beside.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
