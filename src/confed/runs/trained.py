"""A run for some data: one that was trained on it before, or a fresh one. The shortest way from a file to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from confed.data.reading import Reading
from confed.data.registry import has_domains
from confed.data.sources import Notice
from confed.errors import ConfedError
from confed.runs.api import DEFAULT_METHOD, prepared, said_once, started
from confed.runs.finished import Run
from confed.runs.folder import RunFolder, finished_below
from confed.runs.loop import Listener
from confed.runs.prepare import Experiment
from confed.runs.settings import Settings

_OF_DOMAINS = "fppdm++"


def trained(
    dataset: Any,
    method: str | None = None,
    *,
    out: Path,
    users: Sequence[str] = (),
    listener: Listener | None = None,
    notice: Notice | None = None,
    **reading: Unpack[Reading],
) -> tuple[Run, bool]:
    """The newest finished run below `out` that is what a fresh one would be, or else a fresh one; and whether it is
    fresh. `users` are those for whom it is wanted: who is not in the data is missed before anything is trained.
    """
    chosen = method or (_OF_DOMAINS if has_domains(dataset) else DEFAULT_METHOD)
    experiment, data = prepared(chosen, dataset, reading=reading, holdout=True, notice=said_once(notice))
    _require_users(experiment, users)
    for folder in finished_below(out):
        if _is_same(folder, experiment.settings):
            return Run(folder, experiment), False
    return started(experiment, data, out=out, listener=listener), True


def _require_users(experiment: Experiment, users: Sequence[str]) -> None:
    known = {user for part in experiment.whole.parts.values() for user in part.users}
    for user in users:
        if user not in known:
            raise ConfedError(f"user {user!r} is not in {experiment.settings.dataset}: give an id as the data has it")


def _is_same(folder: RunFolder, settings: Settings) -> bool:
    """A folder that cannot be read is somebody else's trouble."""
    if not folder.is_finished:
        return False
    other = folder.settings()
    return (other.run_id, other.rounds, other.patience) == (settings.run_id, settings.rounds, settings.patience)
