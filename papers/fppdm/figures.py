"""The paper's pictures from runs of our own.

    python -m papers.fppdm.figures --out pictures     # FPPDM and FPPDM++ on Douban, seed 0; resumes

pictures/fppdm.html and pictures/fppdm++.html are the reports of two runs, with users as ellipses: after training, and
of FPPDM++ also before; figure-3.html (ablation) and figure-4.html (both weights) are drawn from the results of the
recipe. data/ holds how compact the clusters are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

import confed
from confed.analysis.preferences import preference_maps
from confed.analysis.style import figure
from confed.files import written_beside
from confed.report import write_report
from papers.cells import Cell, kept_run, load_results
from papers.fppdm.recipe import ABLATION, RESULTS
from papers.fppdm.tables import DOMAINS, first_seed, of, weights
from papers.rows import Result

HERE = Path(__file__).parent
DATA = HERE / "data"
METHODS = ("fppdm", "fppdm++")
ROUNDS = 5


def compactness(run: confed.Run) -> dict[str, Any]:
    """How compact users are in every domain, untrained and in the chosen round; lower is more compact."""
    return {
        picture.domain: {moment: cloud.compactness for moment, cloud in picture.clouds.items()}
        for picture in preference_maps(run)
    }


def figure_3(results: list[Result]) -> go.Figure:
    """The ablation, a bar for every variant and domain."""
    names = [*(f"FPPDM++ ({v})" for v in ABLATION), "FPPDM", "FPPDM++"]
    shown = {name: first_seed(results, name, "amazon-game-video") for name in names}
    present = {name: found[0] for name, found in shown.items() if found}
    traces = [
        go.Bar(name=domain, x=list(present), y=[of(domain)(result)["hr@10"] for result in present.values()])
        for domain in DOMAINS["amazon-game-video"]
    ]
    return figure(traces, "Ablation, amazon-game-video, warm, 99 negatives", "", "HR@10")


def figure_4(results: list[Result]) -> go.Figure:
    """Both weights, a line for each, the mean of the domains."""
    traces = []
    for option in ("alignment", "clustering"):
        line = []
        for variant, shown in weights(option).items():
            found = first_seed(results, variant, "douban")
            if found:
                mean = sum(of(d)(found[0])["hr@10"] for d in DOMAINS["douban"]) / len(DOMAINS["douban"])
                line.append((float(shown.split("=")[1]), mean))
        traces.append(go.Scatter(name=option, x=[w for w, _ in line], y=[v for _, v in line], mode="lines+markers"))
    return figure(traces, "Weights of FPPDM++, Douban, warm, 99 negatives", "weight", "HR@10", xaxis_type="log")


def drawn(results: list[Result]) -> dict[str, go.Figure]:
    return {"figure-3": figure_3(results), "figure-4": figure_4(results)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m papers.fppdm.figures", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="douban")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="runs and pages")
    chosen = parser.parse_args()
    found: dict[str, Any] = {"dataset": chosen.dataset, "protocol": "warm", "seed": 0, "rounds": chosen.rounds}
    for method in METHODS:
        run = kept_run(Cell(method, chosen.dataset, "warm", 0, chosen.rounds, method), chosen.out / method)
        write_report(run, chosen.out / f"{method}.html")
        found[method] = {"compactness": compactness(run)}
    for name, picture in drawn(load_results(RESULTS)).items():
        picture.write_html(chosen.out / f"{name}.html", include_plotlyjs=True)
    DATA.mkdir(exist_ok=True)
    with written_beside(DATA / f"{chosen.dataset}.json") as beside:
        beside.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
