"""`make bench`: seconds per round and peak memory, as tables with ratios.

1. Against the oracle (benchmarks/plain.py) in this run: one round with sampling, local training and the evaluation of
   validation and test items; ours also ranks all items and scores a second view, the oracle does not.
2. Growth with the number of clients: `synthetic` with 1x, 2x, 4x users.

Each engine measurement runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import plain
from confed.data import load_dataset
from confed.data.split import Split, split
from confed.engines.local import LocalEngine
from confed.evaluation.candidates import draw_candidates
from confed.evaluation.evaluator import Evaluator
from confed.evaluation.protocol import STRICT
from confed.methods.base import FederatedMethod
from confed.methods.registry import method_named
from confed.runs.memory import peak_rss_mb

console = Console()
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="ml-100k", help="dataset of the comparison with the oracle")
    parser.add_argument("--methods", nargs="+", default=["pfedrec", "fedmf", "fedncf"])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the engine that are timed (median)")
    parser.add_argument("--users", type=int, default=5000, help="users of the smallest synthetic dataset")
    parser.add_argument("--items", type=int, default=5000, help="items of the synthetic datasets")
    parser.add_argument("--no-oracle", action="store_true", help="only the growth table")
    parser.add_argument("--out", type=Path, help="write the measurements to this JSON file as well")
    chosen = parser.parse_args()
    results: dict[str, Any] = {"cores": torch.get_num_threads(), "torch": torch.__version__}
    if not chosen.no_oracle:
        results["oracle"] = against_oracle(chosen.methods, chosen.dataset, chosen.rounds)
    results["growth"] = growth(chosen.users, chosen.items, chosen.rounds)
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def against_oracle(methods: list[str], dataset: str, rounds: int) -> list[dict[str, Any]]:
    """One row per method: seconds per round and peak memory, ours and the oracle's, and their ratios."""
    headings = ("method", "confed s/round", "oracle s/round", "ratio", "confed MB", "oracle MB", "ratio")
    table = Table(*headings, title=f"One round on {dataset}, sampling and both evaluations included")
    rows = []
    for name in methods:
        ours = in_own_process(engine_rounds, name, dataset, rounds)
        theirs = in_own_process(oracle_round, name, dataset)
        row = {"method": name, "dataset": dataset, "confed": ours, "oracle": theirs}
        row["faster"] = theirs["seconds"] / ours["seconds"]
        row["memory"] = ours["peak_mb"] / theirs["peak_mb"]
        rows.append(row)
        seconds = f"{ours['seconds']:.3f}", f"{theirs['seconds']:.1f}", f"{row['faster']:.0f}x"
        table.add_row(name, *seconds, f"{ours['peak_mb']:.0f}", f"{theirs['peak_mb']:.0f}", f"{row['memory']:.2f}x")
    console.print(table)
    return rows


def growth(users: int, items: int, rounds: int) -> list[dict[str, Any]]:
    """Seconds per round and memory with 1x, 2x and 4x users."""
    headings = ("users", "s/round", "seconds per user", "peak MB", "memory")
    table = Table(*headings, title=f"PFedRec on synthetic data with {items:,} items; ratios to the first row")
    rows: list[dict[str, Any]] = []
    for factor in (1, 2, 4):
        dataset = f"synthetic:users={factor * users},items={items}"
        row = {"users": factor * users, "items": items} | in_own_process(engine_rounds, "pfedrec", dataset, rounds)
        rows.append(row)
        per_user = row["seconds"] / factor / rows[0]["seconds"]
        memory = row["peak_mb"] / rows[0]["peak_mb"]
        cells = f"{row['seconds']:.2f}", f"{per_user:.2f}x", f"{row['peak_mb']:.0f}", f"{memory:.2f}x"
        table.add_row(f"{factor * users:,}", *cells)
    console.print(table)
    return rows


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def engine_rounds(name: str, dataset: str, rounds: int) -> dict[str, float]:
    """The median of `rounds` rounds after one to warm up, both evaluations of every view included."""
    cut = split(load_dataset(dataset), STRICT, SEED)
    method = method_named(name)
    assert isinstance(method, FederatedMethod)
    engine = LocalEngine(method.pieces(method.config(dataset, {}), cut.items), cut.training, SEED)
    evaluator = Evaluator(cut, STRICT, SEED)
    seconds = []
    for number in range(1, rounds + 2):
        began = time.perf_counter()
        cards = {view: evaluator.scorecard() for view in engine.views}
        engine.round(number, cards)
        for card in cards.values():
            card.result().metrics("validation"), card.result().metrics("test")
        seconds.append(time.perf_counter() - began)
    return {"seconds": statistics.median(seconds[1:]), "peak_mb": peak_rss_mb()}


def oracle_round(name: str, dataset: str) -> dict[str, float]:
    """One round of all clients, one after another. It is timed once: it takes as long as all of ours together."""
    cut = split(load_dataset(dataset), STRICT, SEED)
    config: Any = method_named(name).config(dataset, {})
    federation = plain_federation(name, config, cut.items)
    state = federation.model.state_dict()
    candidates = [torch.from_numpy(drawn) for drawn in draw_candidates(cut, STRICT, SEED)]
    rng = random.Random(SEED)
    began = time.perf_counter()
    shared: plain.State = {key: torch.zeros_like(value) for key, value in state.items()}
    for client in range(cut.users):
        model = train_plainly(federation, state, cut, client, config.train_negatives, rng)
        for key, value in model.state_dict().items():
            shared[key] += value / cut.users
        for held_out, drawn in zip((cut.validation, cut.test), candidates, strict=True):
            plain.rank_client(model, int(held_out[client]), drawn[client])
    return {"seconds": time.perf_counter() - began, "peak_mb": peak_rss_mb()}


def train_plainly(
    federation: plain.PlainFederation,
    state: plain.State,
    cut: Split,
    client: int,
    negatives: int,
    rng: random.Random,
) -> torch.nn.Module:
    """Sampling and local training of one client."""
    excluded = set(cut.training.excluded[client].tolist())
    pool = [item for item in range(cut.items) if item not in excluded]
    items, labels = plain.sample_rows(cut.training.positives[client].tolist(), pool, negatives, rng)
    orders = [torch.randperm(len(items)) for _ in range(federation.epochs)]
    return federation.train_client(state, items, labels, orders)


def plain_federation(name: str, config: Any, items: int) -> plain.PlainFederation:
    """The oracle's form of each method."""
    rate = config.learning_rate
    model: torch.nn.Module
    steps: tuple[plain.PlainStep, ...]
    if name == "pfedrec":
        model = plain.PlainLinear(items, config.dim)
        item_rate = rate * items * config.item_rate_factor
        steps = (plain.PlainStep({"affine": rate}), plain.PlainStep({"embedding": item_rate}))
    elif name == "fedmf":
        model = plain.PlainDot(items, config.dim)
        steps = (plain.PlainStep({"user": rate, "embedding": config.item_rate(items)}),)
    else:
        model = plain.PlainNeuMF(items, config.dim, config.tower)
        steps = (plain.PlainStep({"": rate}, "adam"),)
    return plain.PlainFederation(model, steps, config.local_epochs, config.batch_size)


if __name__ == "__main__":
    main()
