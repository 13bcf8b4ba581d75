"""An experiment from wherever it stands to its end, at the place that its settings name."""

from __future__ import annotations

from typing import Any

from confed.errors import StoppedError
from confed.runs.commits import gather
from confed.runs.folder import RunFolder
from confed.runs.launch import launch
from confed.runs.loop import Listener, Loop
from confed.runs.prepare import Experiment
from confed.runs.summary import summarise
from confed.runs.verdict import YARDSTICK

_SECONDS = 50_000_000
"""Pairs of user and item that take some seconds to rank."""


def execute(experiment: Experiment, folder: RunFolder, listener: Listener | None = None) -> dict[str, Any]:
    """Run to the end from wherever the folder's checkpoint stands; returns the summary and writes it."""
    try:
        (_locally if experiment.settings.engine == "local" else launch)(experiment, folder, listener)
    except KeyboardInterrupt:
        # Not saved here: in the middle of a round the clients' state is neither the old one nor the new one.
        done = len(folder.metrics())
        raise StoppedError(f"stopped in round {done + 1}; go on with `confed run --resume {folder.path}`") from None
    checkpoint = folder.load_progress()
    if listener:
        _tell_what_is_left(experiment, checkpoint.round, listener)
    summary = summarise(experiment, folder, checkpoint, folder.metrics())
    folder.save_summary(summary)
    return summary


def _tell_what_is_left(experiment: Experiment, rounds: int, listener: Listener) -> None:
    """Of large data, popularity takes a while to rank everything too."""
    if experiment.settings.method != YARDSTICK and experiment.cut.users * experiment.cut.items > _SECONDS:
        waiting = "the last round is done, popularity ranks the same items"
        listener({"round": rounds, "loss": None, "views": {}, "waiting": waiting}, experiment.settings)


def _locally(experiment: Experiment, folder: RunFolder, listener: Listener | None) -> None:
    gather(folder)  # if it was elsewhere before
    loop = Loop(experiment.settings, experiment.trainer(), experiment.examination.grading, folder, listener)
    loop.run()
