"""Rounds without federation: models that have their data in one place, one of everything or one for every domain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

import numpy as np
from torch import Tensor

from confed.data.interactions import ONLY
from confed.errors import in_domain
from confed.evaluation.judge import Judge
from confed.messages import Tally
from confed.models.base import JointModel
from confed.protocol import View
from confed.scoring import fill
from confed.soundness import trained
from confed.tensors import joined, part_of
from confed.threads import in_parallel
from confed.training import Round, Trainer

Done = TypeVar("Done")


class OnePlace(Trainer):
    """`models` by domain, or under `ONLY` the one of all domains. They train side by side."""

    view: View = "global"
    views: tuple[View, ...] = ("global",)

    def __init__(self, models: Mapping[str, JointModel], judges: Mapping[str, Judge]) -> None:
        self.models = dict(models)
        self.judges = judges

    def round(self, number: int, views: Collection[View] = ()) -> Round:
        losses = list(self._of_each(lambda domain: self._train(domain, number), self.models))
        told = [loss for loss in losses if loss is not None]
        tallies = {v: dict(zip(self.judges, self._of_each(self._examine, self.judges), strict=True)) for v in views}
        participants = len(losses) if len(losses) > 1 else self.models[next(iter(self.models))].users
        return Round(float(np.mean(told)) if told else None, participants, tallies=tallies)

    def _of_each(self, work: Callable[[str], Done], domains: Iterable[str]) -> Iterable[Done]:
        """Several models have a thread each; one alone has them all."""
        return in_parallel(work, domains) if len(self.models) > 1 else map(work, domains)

    def _train(self, domain: str, number: int) -> float | None:
        with in_domain(domain):
            model = self.models[domain]
            return trained(lambda: model.train(number), model.state, model.outcomes)

    def _examine(self, domain: str) -> Tally:
        model = self.models.get(domain) or self.models[ONLY]
        card = self.judges[domain].scorecard()
        with in_domain(domain):
            fill(card, model.scorer_of(domain), model.values_of(domain))
        return card.tally()

    def state(self) -> dict[str, Tensor]:
        return _together({domain: model.state() for domain, model in self.models.items()})

    def load(self, state: Mapping[str, Tensor]) -> None:
        for domain, model in self.models.items():
            model.load(of_domain(state, domain))

    def serving_state(self) -> dict[str, Tensor]:
        return _together({domain: model.serving_state() for domain, model in self.models.items()})


def _together(states: Mapping[str, dict[str, Tensor]]) -> dict[str, Tensor]:
    return states[ONLY] if ONLY in states else joined(states)


def of_domain(state: Mapping[str, Tensor], domain: str) -> Mapping[str, Tensor]:
    """The part of one model."""
    return state if domain == ONLY else part_of(state, domain)
