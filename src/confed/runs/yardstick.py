"""Popularity, the line that anything learned has to pass, on a run's own test items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from confed.evaluation.domains import DomainResult
from confed.evaluation.evaluator import Result
from confed.evaluation.metrics import Ranks
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.protocol import View
from confed.runs.prepare import Experiment
from confed.runs.verdict import COMPARED, YARDSTICK


def popularity(experiment: Experiment, ranks: Mapping[str, Tensor], view: View) -> dict[str, Any]:
    """Its test metrics on the same cut and the same candidates, of every domain where there are several.

    `error` is the standard error, over users, of the run's difference from it; `ranks` is where their items stood in
    the run's chosen round, as its folder has them.
    """
    method = method_named(YARDSTICK)
    terms = Terms(method.config(None, {}), experiment.terms.seed, experiment.terms.dtype)
    trainer = method.trainer(terms, experiment.cut, experiment.examination.judges)
    result = experiment.examination.grading.result(trainer.round(1, [trainer.view]).tallies[trainer.view])
    return {**result.metrics("test"), "error": {metric: _error(metric, result, ranks, view) for metric in COMPARED}}


def _error(metric: str, result: Result | DomainResult, ranks: Mapping[str, Tensor], name: str) -> float:
    """Of a mean over domains, as if each had people of its own."""
    if isinstance(result, DomainResult):
        errors = [_error(metric, of, ranks, f"{name}.{domain}") for domain, of in result.of.items()]
        return math.hypot(*errors) / len(errors)
    kind, k = metric.split("@")
    ours = Ranks(ranks[f"{name}.above"].numpy(), ranks[f"{name}.equal"].numpy())
    theirs = result.sampled["test"]
    one, other = (of.per_user(kind, int(k), result.protocol.rank_ties) for of in (ours, theirs))
    return 100 * float(np.std(one - other)) / math.sqrt(max(len(one) - 1, 1))
