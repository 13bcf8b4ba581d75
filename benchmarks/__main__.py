"""`make bench`: seconds per round and peak memory, as tables with ratios.

1. Against the oracle (benchmarks/plain.py) in this run: one round with sampling, local training and the evaluation of
   validation and test items under the method's own view; ours also ranks all items, the oracle does not. Beside it
   the ratio to an old commit (benchmarks/commits.py), and to what the machine allows (benchmarks/limits.py).
2. Preparing and ranking where there are many items, against the old commit.
3. CoFedRec under both schedules against the oracle with the contrastive term in the published style.
4. Fed3CR, whose clients keep a table each and whose terms reach all of it, on MovieLens-1M.
5. FPPDM++ against FPPDM on Douban (companies, whole rounds of five local epochs), and one round of FPPDM++ on the
   largest pair of domains.
6. Growth: `synthetic` with 1x, 2x, 4x users, and with 1x, 2x, 4x items.

All of it takes the better part of an hour, a third of that the largest pair of domains; `--only oracle` takes minutes.
Each measurement (benchmarks/measure.py) runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from papers.provenance import code_here
from rich.console import Console
from rich.table import Table

from benchmarks import limits
from benchmarks.commits import checked_out, in_turns

console = Console()

BEFORE = "b9d91dc"
"""The last commit before speed was worked on."""
_LIMITED = ("pfedrec", "fedmf", "fedrap", "fedncf")
"""Methods whose arithmetic benchmarks/limits.py knows."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="ml-100k", help="dataset of the comparison with the oracle")
    parser.add_argument("--methods", nargs="+", default=["pfedrec", "fedmf", "fedrap", "fedncf", "fed3cr"])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the engine that are timed (median)")
    parser.add_argument("--old", default=BEFORE, metavar="COMMIT", help="an old commit to compare with (%(default)s)")
    parser.add_argument("--users", type=int, default=5000, help="users of the smallest synthetic dataset")
    parser.add_argument("--items", type=int, default=5000, help="items of the synthetic datasets")
    sections: dict[str, Callable[[], Any]] = {
        "oracle": lambda: against_oracle(chosen.methods, chosen.dataset, chosen.rounds, chosen.old),
        "items": lambda: many_items(chosen.old, chosen.rounds),
        "contrast": lambda: contrast(chosen.dataset),
        "large": lambda: large("fed3cr", "ml-1m"),
        "silos": lambda: silos("douban", "amazon-phone-elec"),
        "growth": lambda: growth(chosen.users, chosen.items, chosen.rounds),
    }
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections), help="some sections (all)")
    parser.add_argument("--out", type=Path, help="a JSON file; sections measured now replace those it has")
    chosen = parser.parse_args()
    for name in chosen.only:
        section = sections[name]()
        if chosen.out:
            write_section(chosen.out, name, section)


def write_section(path: Path, name: str, section: Any) -> None:
    """A section is of one run on one machine; the file may hold sections of several runs."""
    results = json.loads(path.read_text("utf-8")) if path.exists() else {}
    about = {
        "cores": torch.get_num_threads(),
        "torch": torch.__version__,
        "code": code_here("benchmarks", ":!benchmarks/results.json"),
    }
    results[name] = {**about, "measured": section}
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def against_oracle(methods: list[str], dataset: str, rounds: int, old: str) -> list[dict[str, Any]]:
    """One row per method: seconds per round, and their ratios to the oracle's, to an old commit's, to the limit."""
    headings = ("method", "CPU s", "wall s", "oracle s", "faster", "than old", "limit ms", "from it", "MB, oracle")
    title = f"One round on {dataset}, sampling and both evaluations included; old: {old[:7]}"
    table = Table(*headings, title=title)
    speed, rows = limits.machine(), []
    with checked_out(old) as tree:
        for name in methods:
            ours = measured("engine", name, dataset, rounds)
            theirs = measured("oracle", name, dataset, 1)
            row: dict[str, Any] = {"method": name, "dataset": dataset, "confed": ours, "oracle": theirs}
            row["faster"] = theirs["seconds"] / ours["seconds"]
            row["than_old"] = {"commit": old, "wall": 1 / before(tree, f"{name}={dataset}", rounds)}
            row["limit"] = limits.limit(name, dataset, speed) if name in _LIMITED else None
            rows.append(row)
            table.add_row(*_against_oracle(row))
    console.print(table)
    return rows


def _against_oracle(row: dict[str, Any]) -> list[str]:
    ours, theirs, limit = row["confed"], row["oracle"], row["limit"]
    return [
        row["method"],
        f"{ours['cpu_seconds']:.3f}",
        f"{ours['seconds']:.3f}",
        f"{theirs['seconds']:.1f}",
        f"{row['faster']:.0f}x",
        f"{row['than_old']['wall']:.1f}x",
        f"{1000 * limit:.1f}" if limit else "–",
        f"{ours['seconds'] / limit:.0f}x" if limit else "–",
        f"{ours['peak_mb']:.0f}, {theirs['peak_mb']:.0f}",
    ]


def before(tree: Path, case: str, pairs: int, what: str = "round") -> float:
    """Seconds that pass now over those on an old commit: the median of pairs in turns."""
    return statistics.median(in_turns(tree, case, pairs, what, "wall"))


def many_items(old: str, pairs: int) -> list[dict[str, Any]]:
    """Preparing and ranking with 18,000 items: how much faster than on an old commit."""
    case = "pfedrec=synthetic:users=3000,items=18000"
    table = Table("work", "faster than before", title=f"{case.partition('=')[2]} against {old[:7]}")
    with checked_out(old) as tree:
        rows = [{"work": work, "faster": 1 / before(tree, case, pairs, work)} for work in ("prepare", "rank")]
    for row in rows:
        table.add_row(str(row["work"]), f"{row['faster']:.1f}x")
    console.print(table)
    return rows


def contrast(dataset: str) -> list[dict[str, Any]]:
    """CoFedRec: one row per schedule, with the seconds of the oracle that takes the dense term in every step twice."""
    table = Table("schedule", "confed s/round", "oracle s/round", "ratio", title=f"One round of CoFedRec on {dataset}")
    theirs = measured("oracle", "cofedrec", dataset, 1)
    rows = []
    for schedule, rounds in (("once-per-round", 9), ("every-step", 3)):
        ours = measured("engine", "cofedrec", dataset, rounds, f"schedule={schedule}")
        faster = theirs["seconds"] / ours["seconds"]
        rows.append({"schedule": schedule, "dataset": dataset, "confed": ours, "oracle": theirs, "faster": faster})
        table.add_row(schedule, f"{ours['seconds']:.2f}", f"{theirs['seconds']:.0f}", f"{faster:.0f}x")
    console.print(table)
    return rows


def large(method: str, dataset: str) -> dict[str, Any]:
    """Seconds per round and peak memory of a method for which both count."""
    found = measured("engine", method, dataset, 1)
    table = Table("method", "dataset", "s/round", "peak MB", title="Two dense tables for every client")
    table.add_row(method, dataset, f"{found['seconds']:.1f}", f"{found['peak_mb']:.0f}")
    console.print(table)
    return {"method": method, "dataset": dataset, **found}


def silos(dataset: str, largest: str) -> list[dict[str, Any]]:
    """FPPDM and FPPDM++ on one pair of domains, with their ratio, and FPPDM++ on the largest."""
    table = Table("method", "dataset", "s/round", "ratio", "peak MB", title="One round between companies")
    rows: list[dict[str, Any]] = []
    for method, data, rounds in (("fppdm", dataset, 3), ("fppdm++", dataset, 3), ("fppdm++", largest, 1)):
        row = {"method": method, "dataset": data, **measured("domains", method, data, rounds)}
        rows.append(row)
        ratio = f"{row['seconds'] / rows[0]['seconds']:.2f}x" if data == dataset else "–"
        table.add_row(method, data, f"{row['seconds']:.1f}", ratio, f"{row['peak_mb']:.0f}")
    console.print(table)
    return rows


def growth(users: int, items: int, rounds: int) -> list[dict[str, Any]]:
    """Seconds per round and memory with 1x, 2x and 4x users, and with 1x, 2x and 4x items; the limit beside them."""
    headings = ("users", "items", "s/round", "per user", "limit s", "peak MB", "memory")
    table = Table(*headings, title="PFedRec on synthetic data; ratios to the first row")
    speed = limits.machine()
    rows: list[dict[str, Any]] = []
    for more_users, more_items in ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4)):
        row: dict[str, Any] = {"users": more_users * users, "items": more_items * items}
        dataset = "synthetic:" + ",".join(f"{name}={count}" for name, count in row.items())
        row |= {**measured("engine", "pfedrec", dataset, rounds), "limit": limits.limit("pfedrec", dataset, speed)}
        rows.append(row)
        per_user = row["seconds"] / more_users / rows[0]["seconds"]
        memory = row["peak_mb"] / rows[0]["peak_mb"]
        cells = f"{row['seconds']:.2f}", f"{per_user:.2f}x", f"{row['limit']:.3f}", f"{row['peak_mb']:.0f}"
        table.add_row(f"{row['users']:,}", f"{row['items']:,}", *cells, f"{memory:.2f}x")
    console.print(table)
    return rows


def measured(what: str, method: str, dataset: str, rounds: int, *options: str) -> dict[str, float]:
    """One measurement, in a process of its own, so that its peak memory is its own."""
    console.print(f"measuring: {what} {method} {dataset} {' '.join(options)}", style="dim", highlight=False)
    command = [sys.executable, "-m", "benchmarks.measure", what, method, dataset, str(rounds), *options]
    waiting = {"OMP_WAIT_POLICY": "ACTIVE"} if what == "oracle" else {}  # what it is fastest with
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **waiting})
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
