"""An old commit against this tree: seconds of a round, the two in turns on one machine.

    python -m benchmarks.commits OLD                          # pfedrec, cofedrec, fed3cr on ml-100k, fppdm++ on douban
    python -m benchmarks.commits OLD --only fedmf=ml-100k     # another method
    python -m benchmarks.commits OLD --pairs 30
    python -m benchmarks.commits OLD --what prepare           # instead of rounds: cut the data and draw candidates
    python -m benchmarks.commits OLD --what rank              # ... or rank all items for everybody

Each side is a process of its own that keeps its state and runs the same rounds, evaluation included; never both at
once. Whatever else the machine does falls on both sides alike, so the ratio of a pair means more than the seconds: CPU
seconds of all threads, or with --wall those that pass. The interval is that of the median over pairs, by order
statistics, at 95 % or a little more.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ("pfedrec=ml-100k", "cofedrec=ml-100k", "fed3cr=ml-100k", "fppdm++=douban")
WARM_UP = 2

WORKER = """
import inspect, json, sys, time, torch
from confed.data.registry import load
from confed.runs.settings import resolve
try:
    from confed.runs.prepare import Experiment
except ImportError:
    from confed.runs.runner import Experiment
method, dataset = sys.argv[1:]
can_be_known = "known" in inspect.signature(resolve).parameters and not dataset.startswith("synthetic:")
known = {"known": dataset} if can_be_known else {}
protocol = "warm" if dataset == "douban" else "strict"
settings, data = resolve(method, dataset, protocol=protocol, **known), load(dataset)
experiment = Experiment.prepare(settings, data)
trainer = experiment.trainer() if callable(experiment.trainer) else experiment.trainer
for line in sys.stdin:
    what, number = line.split()
    views = trainer.views
    if hasattr(experiment, "evaluator"):
        views = {view: experiment.evaluator.scorecard() for view in views}
    before = time.process_time(), time.perf_counter()
    if what == "prepare":
        Experiment.prepare(settings, data)
    elif what == "rank":
        server = trainer.server
        by_client = hasattr(server, "download")
        told = (server.download(), torch.arange(len(server.ids))) if by_client else (server.strategy.download(),)
        trainer.federation.examine(*told)
    else:
        trainer.round(int(number), views)
    after = time.process_time(), time.perf_counter()
    print(json.dumps({"cpu": after[0] - before[0], "wall": after[1] - before[1]}), flush=True)
"""
"""Runs on either commit, so it is not part of one; `known` came with provenance, `prepare` with the federation."""


class Side:
    """One commit, in a process that works when it is asked to."""

    def __init__(self, tree: Path, method: str, dataset: str) -> None:
        path = os.pathsep.join([str(tree / "src"), str(tree)])
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, method, dataset],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": path},
        )

    def work(self, what: str, number: int) -> dict[str, float]:
        """Seconds, `cpu` and `wall`."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{what} {number}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{what} {number} failed on one side (exit code {self._process.wait()})")
        found: dict[str, float] = json.loads(answer)
        return found

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def in_turns(old: Path, case: str, pairs: int, what: str = "round", seconds: str = "cpu") -> list[float]:
    """New over old, pair by pair; who goes first changes from pair to pair."""
    method, _, dataset = case.partition("=")
    sides = [Side(tree, method, dataset) for tree in (old, ROOT)]
    ratios = []
    for number in range(1, WARM_UP + pairs + 1):
        order = (0, 1) if number % 2 else (1, 0)
        took = {side: sides[side].work(what, number)[seconds] for side in order}
        if number > WARM_UP:
            ratios.append(took[1] / took[0])
            print(f"{case}: {what} {number}: {took[0]:.3f} s, {took[1]:.3f} s", file=sys.stderr, flush=True)
    for side in sides:
        side.end()
    return ratios


def interval(ratios: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Of the median: from the k-th smallest to the k-th largest, with the largest k that is sure enough."""
    ordered, n = sorted(ratios), len(ratios)
    outside = [2 * sum(math.comb(n, j) for j in range(k)) / 2**n for k in range(1, n // 2 + 1)]
    k = max((k for k, missed in enumerate(outside, start=1) if missed <= 1 - level), default=1)
    return ordered[k - 1], ordered[n - k]


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        made = subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=False)
        if made.returncode:
            raise SystemExit(f"{commit} cannot be checked out; git says why above")
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", help="the commit to compare with")
    parser.add_argument("--pairs", type=int, default=15, help="rounds that count, on either side")
    parser.add_argument("--only", nargs="+", default=CASES, metavar="METHOD=DATASET", help="other cases")
    parser.add_argument("--what", choices=("round", "prepare", "rank"), default="round")
    parser.add_argument(
        "--wall", action="store_const", const="wall", default="cpu", help="seconds that pass", dest="of"
    )
    chosen = parser.parse_args()
    with checked_out(chosen.old) as old:
        for case in chosen.only:
            ratios = in_turns(old, case, chosen.pairs, chosen.what, chosen.of)
            low, high = interval(ratios)
            print(f"{case}: median {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] of {len(ratios)} pairs")


if __name__ == "__main__":
    main()
