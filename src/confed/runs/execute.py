"""An experiment from wherever it stands to its end, at the place that its settings name."""

from __future__ import annotations

from typing import Any

from confed.errors import DivergedError, StoppedError, UnwritableError
from confed.runs.commits import gather
from confed.runs.folder import RunFolder
from confed.runs.launch import launch
from confed.runs.loop import Listener, Loop, is_over
from confed.runs.memory import within_memory
from confed.runs.prepare import Experiment
from confed.runs.stopping import patient_ctrl_c
from confed.runs.summary import summarise
from confed.runs.verdict import YARDSTICK
from confed.visible import quoted

_SECONDS = 50_000_000
"""Pairs of user and item that take some seconds to rank."""


def execute(experiment: Experiment, folder: RunFolder, listener: Listener | None = None) -> dict[str, Any]:
    """Run to the end from wherever the folder's checkpoint stands; returns the summary and writes it."""
    folder.begin()
    try:
        with patient_ctrl_c(folder), within_memory(experiment.terms.config):
            (_locally if experiment.settings.engine == "local" else launch)(experiment, folder, listener)
        return _summarised(experiment, folder, listener)
    except UnwritableError as error:
        raise UnwritableError(f"{error.message}; then go on with `confed run --resume {folder.path}`") from None
    except DivergedError as error:
        raise _named(error, experiment) from None
    except KeyboardInterrupt:
        # Not saved here: in the middle of a round the clients' state is neither the old one nor the new one.
        raise _stopped(folder, "at once") from None


def _named(error: DivergedError, experiment: Experiment) -> DivergedError:
    """Whoever trains knows numbers; the data has the names."""
    if error.client is None:
        return error
    return error.called(f"user {quoted(experiment.cut.parts[error.domain].user_ids[error.client])}")


def _summarised(experiment: Experiment, folder: RunFolder, listener: Listener | None) -> dict[str, Any]:
    progress = folder.load_progress()
    if not is_over(experiment.settings, progress):
        raise _stopped(folder, f"after round {progress.round} of {experiment.settings.rounds}")
    if listener and experiment.settings.protocol.measures:
        _tell_what_is_left(experiment, progress.round, listener)
    summary = summarise(experiment, folder, progress, folder.metrics())
    folder.save_summary(summary)
    return summary


def _stopped(folder: RunFolder, when: str) -> StoppedError:
    folder.go_on()
    after = folder.load_progress().round
    return StoppedError(f"stopped {when}; `confed run --resume {folder.path}` goes on from round {after + 1}")


def _tell_what_is_left(experiment: Experiment, rounds: int, listener: Listener) -> None:
    """Of large data, popularity takes a while to rank everything too; so does everybody after a sample."""
    sampled = experiment.settings.eval_users is not None
    ranked = experiment.settings.method != YARDSTICK or sampled
    if ranked and experiment.cut.users * experiment.cut.items > _SECONDS:
        everybody = "everybody is ranked in the best one, and " if sampled else ""
        waiting = f"the last round is done, {everybody}popularity ranks the same items"
        listener({"round": rounds, "loss": None, "views": {}, "waiting": waiting}, experiment.settings)


def _locally(experiment: Experiment, folder: RunFolder, listener: Listener | None) -> None:
    gather(folder)  # if it was elsewhere before
    loop = Loop(experiment.settings, experiment.trainer(), experiment.examination.grading, folder, listener)
    loop.run()
