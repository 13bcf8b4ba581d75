"""The evaluation of all domains: each by its own held-out items, and the mean over several."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from confed.data.domain_split import ColdSplit
from confed.data.interactions import ONLY
from confed.data.shares import AnySplit
from confed.data.split import Split
from confed.errors import in_domain
from confed.evaluation.cold import ColdEvaluator
from confed.evaluation.evaluator import Evaluator, Part, Result
from confed.evaluation.metrics import Ints
from confed.evaluation.sample import Sample, examined
from confed.messages import Tally
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


@dataclass(frozen=True)
class Grading:
    """From where held-out items stood to metrics. It knows which rankings there are, and no held-out item."""

    protocol: Protocol
    rankings: Mapping[str, Collection[str]]
    """By domain."""

    def result(self, tallies: Mapping[str, Tally]) -> Result | DomainResult:
        """Of one domain, or of several with their means."""
        results = {name: Result.of(tallies[name], of, self.protocol) for name, of in self.rankings.items()}
        return results[ONLY] if ONLY in results else DomainResult(results)


@dataclass(frozen=True)
class Examination:
    """The evaluators of all domains, and how what they find is graded; none where nothing is held out."""

    judges: Mapping[str, Evaluator | ColdEvaluator]
    grading: Grading

    @classmethod
    def of(
        cls,
        cut: AnySplit,
        protocol: Protocol,
        seed: int,
        rankings: Mapping[str, Collection[str]] | None = None,
        sample: Sample | None = None,
    ) -> Examination:
        """`rankings` are those agreed on, where the cut holds some users only: others may have too few items left.
        `sample` says who is examined, if not everybody.
        """
        agreed, of_whom, judges = rankings or {}, sample or {}, {}
        for name, part in cut.parts.items() if protocol.measures else ():
            judges[name] = _evaluator(name, part, protocol, seed, agreed.get(name), of_whom.get(name))
        return cls(judges, Grading(protocol, {name: judge.rankings for name, judge in judges.items()}))


def _evaluator(
    name: str,
    part: Split | ColdSplit,
    protocol: Protocol,
    seed: int,
    rankings: Collection[str] | None,
    largest: int | None,
) -> Evaluator | ColdEvaluator:
    with in_domain(name):
        if isinstance(part, ColdSplit):
            return ColdEvaluator(part, protocol, seed)
        users = None if largest is None else examined(part.training.ids, seed, largest)
        return Evaluator(part, protocol, seed, rankings=rankings, users=users)
