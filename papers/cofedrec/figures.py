"""The paper's pictures from runs of our own: data as JSON beside this file, pages in a folder of your choice.

    python -m papers.cofedrec.figures --out pictures     # ml-100k, seed 0, 100 rounds; resumes

pictures/cofedrec.html is the report of a CoFedRec run (figures 2, 3 and 6, traffic), pictures/pfedrec.html that of a
PFedRec run, whose clients K-Means fails to group (section 2.2, figure 5). data/ holds the numbers that are quoted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import confed
from confed.analysis.clients import client_tables
from confed.analysis.participation import participation
from confed.analysis.users import user_clusters
from confed.files import written_beside
from confed.report import write_report
from papers.cells import Cell, kept_run
from papers.cofedrec.recipe import PRINTED

HERE = Path(__file__).parent
DATA = HERE / "data"
ROUNDS = 100


def clusters_of_users(run: confed.Run) -> dict[str, Any]:
    tables = client_tables(run)
    assert tables is not None
    found = user_clusters(tables.flatten(1).numpy())
    return {"round": run.summary["best_round"], "sizes": {k: found.sizes(k) for k in found.labels}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m papers.cofedrec.figures", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="ml-100k")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="runs and pages")
    chosen = parser.parse_args()
    runs = {
        name: kept_run(Cell(method, chosen.dataset, "paper", 0, rounds, name, options), chosen.out / name)
        for name, method, rounds, options in (
            ("pfedrec-1", "pfedrec", 1, {}),
            ("pfedrec", "pfedrec", ROUNDS, {}),
            ("cofedrec", "cofedrec", ROUNDS, PRINTED.get(chosen.dataset, {})),
        )
    }
    seen = participation(runs["cofedrec"].lines, runs["cofedrec"].summary["users"])
    found = {
        "dataset": chosen.dataset,
        "protocol": "paper",
        "seed": 0,
        "options": dict(PRINTED.get(chosen.dataset, {})),
        "user_clusters": {name: clusters_of_users(run) for name, run in runs.items()},
        "participation": {"above_70_percent": seen.share_above(), "mean_share": seen.mean_share},
    }
    with written_beside(DATA / f"{chosen.dataset}.json") as beside:
        beside.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name in ("pfedrec", "cofedrec"):
        print(write_report(runs[name], chosen.out / f"{name}.html"))


if __name__ == "__main__":
    main()
