"""What the hardware allows: the least seconds a round can take.

    python -m benchmarks.limits pfedrec ml-100k

Arithmetic that the formulas cannot do without (products of training rows with vectors, of all users with all items,
what a step changes), at the speed of one large matrix product on all cores; and bytes that have to pass through memory,
the rows of tables that clients touch, written once and read once, at the speed of a copy. The larger of the two is the
limit. Sampling and shuffling are left out, and so is everything that takes arithmetic of another kind, such as exp.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from benchmarks.measure import prepared
from confed.clients.procedures import Phase
from confed.clients.sampling import draw_rows
from confed.data.shares import Share
from confed.methods.devices import DeviceMethod
from confed.random import Stream
from confed.runs.prepare import Experiment

_SIDE = 2048
_COPIED = 1 << 27


def fastest(work: Callable[[], Any], times: int = 7) -> float:
    """Seconds of the fastest of some times."""
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def machine() -> dict[str, float]:
    """Operations and bytes a second, of float32 on all cores."""
    one, other = torch.randn(_SIDE, _SIDE), torch.randn(_SIDE, _SIDE)
    source, target = torch.zeros(_COPIED // 4), torch.zeros(_COPIED // 4)
    operations = 2 * _SIDE**3 / fastest(lambda: torch.mm(one, other))
    return {"operations": operations, "bytes": 2 * _COPIED / fastest(lambda: target.copy_(source))}


def of_a_row(method: str, width: int, phase: Phase, tower: tuple[int, ...]) -> int:
    """Operations that a row takes in one epoch: a score, and what the gradient of each part adds."""
    if method == "fedncf":
        layers = sum(above * below for above, below in zip(tower, (2 * width, *tower), strict=False))
        return 6 * layers + 6 * width
    tables = 2 if method == "fedrap" else 1
    scores = 2 * width * tables * len(phase.steps)
    return scores + 2 * width * tables + 2 * width * tables


def work(experiment: Experiment) -> dict[str, float]:
    """Operations and bytes of one round with everybody, ranked under one view."""
    method = experiment.method
    assert isinstance(method, DeviceMethod)
    gateway = method.gateway(experiment.terms, Share.of(experiment.cut))
    procedure, data = gateway.procedure, gateway.data
    tables = gateway.backbone.named(role="item")
    width = tables[0].shape[1]
    rows = touched = 0
    for chunk in gateway.chunks(gateway.ids.numpy()):
        drawn = draw_rows(data, chunk, procedure.negatives, Stream.of(0, "negatives", 1), torch.float32)
        rows += int(drawn.lengths.sum())
        touched += int((drawn.local.amax(dim=1) + 1).sum())
    tower = getattr(gateway.backbone, "tower", ())
    phases = [phase for phase in procedure.phases if isinstance(phase, Phase)]
    training = rows * sum(phase.epochs * of_a_row(experiment.method.name, width, phase, tower) for phase in phases)
    ranking = 2 * width * data.users * data.items
    return {"operations": training + ranking, "bytes": 2 * touched * sum(4 * spec.shape[1] for spec in tables)}


def limit(method: str, dataset: str, of: Mapping[str, float]) -> float:
    """Seconds of a round on a machine."""
    needed = work(prepared(method, dataset))
    return max(needed[what] / of[what] for what in needed)


if __name__ == "__main__":
    name, data = sys.argv[1:]
    found = machine()
    json.dump({**found, "seconds": limit(name, data, found)}, sys.stdout)
