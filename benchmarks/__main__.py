"""`make bench`: seconds per round and peak memory, as tables with ratios.

1. Against the oracle (benchmarks/plain.py) in this run: one round with sampling, local training and the evaluation of
   validation and test items under the method's own view; ours also ranks all items, the oracle does not.
2. CoFedRec under both schedules against the oracle with the contrastive term in the published style.
3. Fed3CR, whose clients keep a table each and whose terms reach all of it, on MovieLens-1M.
4. FPPDM++ against FPPDM on Douban (companies, whole rounds of five local epochs), and one round of FPPDM++ on the
   largest pair of domains.
5. Growth with the number of clients: `synthetic` with 1x, 2x, 4x users.

All of it takes the better part of an hour, a third of that the largest pair of domains; `--only oracle` takes minutes.
Each measurement (benchmarks/measure.py) runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

console = Console()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="ml-100k", help="dataset of the comparison with the oracle")
    parser.add_argument("--methods", nargs="+", default=["pfedrec", "fedmf", "fedrap", "fedncf", "fed3cr"])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the engine that are timed (median)")
    parser.add_argument("--users", type=int, default=5000, help="users of the smallest synthetic dataset")
    parser.add_argument("--items", type=int, default=5000, help="items of the synthetic datasets")
    sections: dict[str, Callable[[], Any]] = {
        "oracle": lambda: against_oracle(chosen.methods, chosen.dataset, chosen.rounds),
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
    results[name] = {"cores": torch.get_num_threads(), "torch": torch.__version__, "measured": section}
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def against_oracle(methods: list[str], dataset: str, rounds: int) -> list[dict[str, Any]]:
    """One row per method: seconds per round and peak memory, ours and the oracle's, and their ratios."""
    headings = ("method", "confed s/round", "oracle s/round", "ratio", "confed MB", "oracle MB", "ratio")
    table = Table(*headings, title=f"One round on {dataset}, sampling and both evaluations included")
    rows = []
    for name in methods:
        ours = measured("engine", name, dataset, rounds)
        theirs = measured("oracle", name, dataset, 1)
        row: dict[str, Any] = {"method": name, "dataset": dataset, "confed": ours, "oracle": theirs}
        row["faster"] = theirs["seconds"] / ours["seconds"]
        row["memory"] = ours["peak_mb"] / theirs["peak_mb"]
        rows.append(row)
        seconds = f"{ours['seconds']:.3f}", f"{theirs['seconds']:.1f}", f"{row['faster']:.0f}x"
        table.add_row(name, *seconds, f"{ours['peak_mb']:.0f}", f"{theirs['peak_mb']:.0f}", f"{row['memory']:.2f}x")
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
    """Seconds per round and memory with 1x, 2x and 4x users."""
    headings = ("users", "s/round", "seconds per user", "peak MB", "memory")
    table = Table(*headings, title=f"PFedRec on synthetic data with {items:,} items; ratios to the first row")
    rows: list[dict[str, Any]] = []
    for factor in (1, 2, 4):
        dataset = f"synthetic:users={factor * users},items={items}"
        row = {"users": factor * users, "items": items} | measured("engine", "pfedrec", dataset, rounds)
        rows.append(row)
        per_user = row["seconds"] / factor / rows[0]["seconds"]
        memory = row["peak_mb"] / rows[0]["peak_mb"]
        cells = f"{row['seconds']:.2f}", f"{per_user:.2f}x", f"{row['peak_mb']:.0f}", f"{memory:.2f}x"
        table.add_row(f"{factor * users:,}", *cells)
    console.print(table)
    return rows


def measured(what: str, method: str, dataset: str, rounds: int, *options: str) -> dict[str, float]:
    """One measurement, in a process of its own, so that its peak memory is its own."""
    console.print(f"measuring: {what} {method} {dataset} {' '.join(options)}", style="dim", highlight=False)
    command = [sys.executable, "-m", "benchmarks.measure", what, method, dataset, str(rounds), *options]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


if __name__ == "__main__":
    main()
