"""The evaluation of several domains: each by its own held-out items, and the mean over domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from confed.data.domain_split import ColdSplit, DomainSplit
from confed.data.split import Split
from confed.errors import said_of
from confed.evaluation.cold import ColdEvaluator, ColdScorecard
from confed.evaluation.evaluator import Evaluator, Part, Result, Scorecard
from confed.evaluation.metrics import Ints
from confed.protocol import Protocol


@dataclass(frozen=True)
class DomainResult:
    """One evaluation of all domains under one view."""

    of: Mapping[str, Result]

    def metrics(self, part: Part) -> dict[str, Any]:
        """Means over domains in percent, each domain counting once; and `domains`, the same of every one of them."""
        domains = {name: result.metrics(part) for name, result in self.of.items()}
        first, *others = domains.values()
        common = [name for name in first if all(name in other for other in others)]
        means = {name: float(np.mean([values[name] for values in domains.values()])) for name in common}
        return {**means, "domains": domains}

    def rank_arrays(self) -> dict[str, Ints]:
        """By domain and name, as `Result` has them."""
        return {
            f"{name}.{kind}": values
            for name, result in self.of.items()
            for kind, values in result.rank_arrays().items()
        }


class DomainScorecard:
    """A scorecard for every domain."""

    def __init__(self, cards: Mapping[str, Scorecard | ColdScorecard]) -> None:
        self._cards = cards

    def __getitem__(self, domain: str) -> Scorecard | ColdScorecard:
        return self._cards[domain]

    def result(self) -> DomainResult:
        return DomainResult({name: card.result() for name, card in self._cards.items()})


class DomainEvaluator:
    """The evaluators of all domains."""

    def __init__(self, cut: DomainSplit, protocol: Protocol, seed: int) -> None:
        self._of = {name: _evaluator(name, part, protocol, seed) for name, part in cut.parts.items()}

    @property
    def rankings(self) -> set[str]:
        """Those that some domain has."""
        return {ranking for evaluator in self._of.values() for ranking in evaluator.rankings}

    def scorecard(self) -> DomainScorecard:
        return DomainScorecard({name: evaluator.scorecard() for name, evaluator in self._of.items()})


def _evaluator(name: str, part: Split | ColdSplit, protocol: Protocol, seed: int) -> Evaluator | ColdEvaluator:
    with said_of(f"domain {name}"):
        if isinstance(part, ColdSplit):
            return ColdEvaluator(part, protocol, seed)
        return Evaluator(part, protocol, seed)
