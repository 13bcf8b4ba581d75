"""Places beside each other: that they give the same, and what they cost.

    python -m benchmarks.places same ray --workers 2        # every method with clients: differences to `local`
    python -m benchmarks.places cost pfedrec ml-1m          # a round on local, processes and ray; where the time goes

`same` trains three rounds on small synthetic data in float64 and float32 and prints, by method, the largest difference
of any tensor relative to its largest entry. `cost` runs some rounds at each place, one after another, without
evaluation, and prints seconds of a round as the median after two to warm up, CPU seconds of all its processes, bytes
that moved between server and sites, and how long the server waited for them. Seconds depend on the machine and on what
else it does: the ratio to `local` in the same run is what counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confed
from confed.methods.registry import METHODS
from confed.runs.folder import RunFolder

PEOPLE, COMPANIES = "synthetic:users=120,items=150", "synthetic:domains=3,users=80,items=150"
SMALL: dict[str, Any] = {"dim": 4, "batch_size": 16, "clusters": 4, "train_negatives": 3}
GENTLE = {"fed3cr": {"item_rate": 1.0, "local_epochs": 2}, "fedrap": {"item_rate": 1.0, "local_epochs": 2}}
"""Steps that are meant for thousands of items explode where there are few."""
WARM_UP = 2


def differences(engine: str, workers: int, rounds: int = 3) -> Iterator[dict[str, Any]]:
    """By method with clients and precision."""
    if engine == "ray":  # one for all runs, which would start one each
        import ray  # noqa: PLC0415 - an extra

        ray.init(include_dashboard=False, log_to_driver=False)
    for name, method in METHODS.items():
        if not method.has_clients:
            continue
        options = {**SMALL, **GENTLE.get(name, {})}
        known = {key: value for key, value in options.items() if key in method.config_class.model_fields}
        data = COMPANIES if method.domains == "several" else PEOPLE
        for dtype in ("float64", "float32"):
            found = _difference(name, data, known, dtype, engine, workers, rounds)
            yield {"method": name, "dtype": dtype, "difference": found}


def _difference(
    method: str, data: str, options: dict[str, Any], dtype: str, engine: str, workers: int, rounds: int
) -> float:
    few = {"negatives": 20, "more_negatives": [], "cutoffs": [5, 10]}
    settings: dict[str, Any] = {"dtype": dtype, "rounds": rounds, "options": {**options, **few}}
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder) / "here", Path(folder) / "there"
        confed.run(method, data, folder=here, **settings)
        confed.run(method, data, folder=there, engine=engine, workers=workers, **settings)
        one, other = (RunFolder(path).load_checkpoint() for path in (here, there))
    assert one and other and one.state.keys() == other.state.keys()
    found = 0.0
    for name, tensor in one.state.items():
        if tensor.numel():
            largest = float(tensor.double().abs().max()) or 1.0
            found = max(found, float((tensor.double() - other.state[name].double()).abs().max()) / largest)
    return found


def cost(method: str, dataset: str, engine: str, workers: int, rounds: int) -> dict[str, Any]:
    """In a process of its own, so that CPU seconds and memory are its and its children's."""
    command = [sys.executable, "-m", "benchmarks.places", "one", method, dataset, engine, str(workers), str(rounds)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def one(method: str, dataset: str, engine: str, workers: int, rounds: int) -> dict[str, Any]:
    place: dict[str, Any] = {} if engine == "local" else {"engine": engine, "workers": workers}
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        total = rounds + WARM_UP
        # The last round alone is evaluated: a run needs one.
        run = confed.run(
            method,
            dataset,
            folder=Path(folder) / "run",
            rounds=total,
            eval_every=total,
            checkpoint_seconds=1e6,
            **place,
        )
        whole = time.monotonic() - began
        seconds = [line["seconds"] for line in run.lines][WARM_UP:-1]
        lines = run.lines[WARM_UP:-1]
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    moved = [line.get("place", {}) for line in lines]
    return {
        "seconds": statistics.median(seconds),
        "whole": whole,
        "cpu": sum(usage.ru_utime + usage.ru_stime for usage in both),
        **{key: statistics.median([of[key] for of in moved]) for key in (moved[0] if moved else {})},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.places", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    same = commands.add_parser("same")
    same.add_argument("engine", choices=["processes", "ray"])
    same.add_argument("--workers", type=int, default=2)
    costs = commands.add_parser("cost")
    costs.add_argument("method")
    costs.add_argument("dataset")
    costs.add_argument("--workers", type=int, default=2)
    costs.add_argument("--rounds", type=int, default=7)
    single = commands.add_parser("one")
    single.add_argument("what", nargs=5)
    chosen = parser.parse_args()
    if chosen.command == "one":
        method, dataset, engine, workers, rounds = chosen.what
        print(json.dumps(one(method, dataset, engine, int(workers), int(rounds))))
    elif chosen.command == "same":
        for line in differences(chosen.engine, chosen.workers):
            print(f"{line['method']:12} {line['dtype']}  {line['difference']:.1e}", flush=True)
    else:
        for engine in ("local", "processes", "ray"):
            found = cost(chosen.method, chosen.dataset, engine, chosen.workers, chosen.rounds)
            print(f"{engine:10} {json.dumps({key: round(value, 4) for key, value in found.items()})}", flush=True)


if __name__ == "__main__":
    main()
