"""Rounds, evaluation, the choice of the round, early stopping, checkpoints: one loop for every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from confed.errors import said_of
from confed.evaluation.domains import DomainResult, Grading
from confed.evaluation.evaluator import Result
from confed.federations.remote import LostSiteError
from confed.protocol import View
from confed.runs.checkpoint import START, Checkpoint, Progress
from confed.runs.folder import RunFolder
from confed.runs.log import Line
from confed.runs.settings import Settings
from confed.training import Round, Trainer

Listener = Callable[[Line, Settings], None]
"""Hears of every round. Before the first, where others have to be started, and after the last, `waiting` says for what.
"""

_SAVE_SHARE = 20
"""At least so many times the time of the last save passes before the next."""


class Loop:
    """Drives a trainer from wherever the folder's checkpoint stands. It knows no data."""

    def __init__(
        self, settings: Settings, trainer: Trainer, grading: Grading, folder: RunFolder, listener: Listener | None
    ) -> None:
        self.settings = settings
        self.trainer = trainer
        self.grading = grading
        self.folder = folder
        self.listener = listener
        self.progress = START
        self._saved, self._save_took = time.monotonic(), 0.0
        self.best: dict[str, Tensor] = {}
        self.ranks: dict[str, Tensor] = {}
        self.lines: list[Line] = []

    def _return(self) -> None:
        """To the last checkpoint, or to where the run began."""
        checkpoint = self.folder.load_checkpoint()
        self.progress, self.best, self.ranks = START, {}, {}
        if checkpoint:
            self.progress, self.best, self.ranks = checkpoint.progress, checkpoint.best, checkpoint.ranks
            self.trainer.load(checkpoint.state)
        self.trainer.restore(self.folder.parts, checkpoint.sites if checkpoint else None)
        self.lines = self.folder.truncate_metrics()

    def run(self) -> None:
        """From wherever the checkpoint stands to the end, or until somebody asks to stop. Whenever a site is lost, all
        return to the checkpoint and go on.
        """
        returned, lost = False, False
        while True:
            try:
                if lost:
                    self.trainer.repair()
                if not returned:
                    self._return()
                    returned = True
                if lost:
                    self._say_that_somebody_was_lost()
                    lost = False
                if is_over(self.settings, self.progress) or self.folder.asked_to_stop:
                    self._save()
                    return
                self._round(self.progress.round + 1)
                self._save_if_due()
            except LostSiteError:
                returned, lost = False, True

    def _say_that_somebody_was_lost(self) -> None:
        if self.listener:
            said = f"a worker died: all are back to round {self.progress.round}"
            self.listener({"round": self.progress.round, "loss": None, "views": {}, "waiting": said}, self.settings)

    def _save_if_due(self) -> None:
        """Large states take long to write: never more than a small part of the time."""
        if time.monotonic() - self._saved >= max(self.settings.checkpoint_seconds, _SAVE_SHARE * self._save_took):
            self._save()

    def _round(self, number: int) -> None:
        began = time.monotonic()
        last = number == self.settings.rounds
        evaluated = self.settings.protocol.measures and (number % self.settings.eval_every == 0 or last)
        with said_of(f"round {number}"):
            done = self.trainer.round(number, self._views if evaluated else ())
        results = {view: self.grading.result(tallies) for view, tallies in done.tallies.items()}
        self.progress = replace(self.progress, round=number)
        line = _line(number, done, results, time.monotonic() - began)
        if evaluated:
            self._choose(number, line, results)
        elif last:
            self._keep(number, 0.0)
        self.lines.append(line)
        self.folder.append_metrics(line)
        if self.listener:
            self.listener(line, self.settings)

    @property
    def _views(self) -> tuple[View, ...]:
        """Those that a round is examined under; the one that the method is judged by is the first."""
        before = len(self.lines[0]["views"]) > 1 if self.lines else False  # of runs begun when all were always ranked
        return self.trainer.views if self.settings.all_views or before else (self.trainer.view,)

    def _choose(self, number: int, line: Line, results: Mapping[View, Result | DomainResult]) -> None:
        """Keep the round if the selecting metric says so."""
        protocol = self.settings.protocol
        value = line["views"][self.trainer.view][protocol.select_on][protocol.select_metric]
        best = self.progress.best_value
        gain = value > best
        if gain or (value == best and protocol.select_ties == "latest"):
            self._keep(number, value)
            self.ranks = {name: t for view, of in results.items() for name, t in rank_tensors(view, of).items()}
        stalled = 0 if gain else self.progress.evaluations_without_gain + 1
        self.progress = replace(self.progress, evaluations_without_gain=stalled)

    def _keep(self, number: int, value: float) -> None:
        """What serving this round takes."""
        self.progress = replace(self.progress, best_round=number, best_value=value)
        self.best = {}  # frees the old one before the new one is made: tables that clients keep are large
        self.best = self.trainer.serving_state()

    def _save(self) -> None:
        began = time.monotonic()
        sites = self.trainer.commit(self.folder.parts)
        self.folder.save_checkpoint(Checkpoint(self.progress, self.trainer.state(), self.best, self.ranks, sites))
        self._saved = time.monotonic()
        self._save_took = self._saved - began


def is_over(settings: Settings, progress: Progress) -> bool:
    """Whether all rounds are done, or none is wanted any more."""
    stalled = settings.patience is not None and progress.evaluations_without_gain >= settings.patience
    return progress.round >= settings.rounds or stalled


def rank_tensors(view: View, result: Result | DomainResult) -> dict[str, Tensor]:
    """Where the users' test items stood, as a checkpoint has it."""
    return {f"{view}.{name}": torch.from_numpy(values) for name, values in result.rank_arrays().items()}


def _line(number: int, done: Round, results: Mapping[View, Result | DomainResult], seconds: float) -> Line:
    views = {view: {part: result.metrics(part) for part in ("validation", "test")} for view, result in results.items()}
    return {
        "round": number,
        "loss": done.loss,
        "seconds": seconds,
        "participants": done.participants,
        "upload_bytes": done.upload_bytes,
        "download_bytes": done.download_bytes,
        **({"server": dict(done.notes)} if done.notes else {}),
        **({"place": dict(done.place)} if done.place else {}),
        "views": views,
    }
