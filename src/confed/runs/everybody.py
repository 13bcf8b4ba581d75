"""A run that ranked a sample of users in its rounds ranks everybody in the one it chose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from confed.errors import said_of
from confed.evaluation.domains import Examination
from confed.evaluation.evaluator import PARTS
from confed.protocol import View
from confed.runs.folder import RunFolder
from confed.runs.loop import rank_tensors
from confed.runs.prepare import Experiment


def with_everybody(experiment: Experiment) -> Experiment:
    """The same experiment, in which nobody is left out of an examination."""
    settings, agreed = experiment.settings, experiment.examination.grading.rankings
    whole = Examination.of(experiment.cut, settings.protocol, settings.seed, agreed)
    return replace(experiment, examination=whole)


def rank_everybody(experiment: Experiment, folder: RunFolder, view: View, number: int) -> dict[View, Any]:
    """The metrics of round `number`, which was kept, under the view that it was chosen by; where everybody's items
    stood is kept too.
    """
    state, examination = folder.load_best() or {}, experiment.examination
    with said_of(f"round {number}"):
        tallies = experiment.method.examined(experiment.terms, experiment.cut, examination.judges, state, number)
    result = examination.grading.result(tallies)
    folder.save_ranks(rank_tensors(view, result))
    return {view: {part: result.metrics(part) for part in PARTS}}
