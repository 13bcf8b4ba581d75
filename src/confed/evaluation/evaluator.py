"""Ranks held-out items. The only place that knows them.

Scores arrive as (clients, items) chunks in any order; sampled and full ranking, validation and test are counted off
each chunk (`counting.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from confed.data.split import Split
from confed.evaluation.candidates import draw_candidates, most_candidates
from confed.evaluation.counting import bounds, count_all, count_some, ranked
from confed.evaluation.metrics import Ints, Ranks
from confed.messages import Tally
from confed.protocol import Protocol
from confed.soundness import require_scores

Part = Literal["validation", "test"]
PARTS: tuple[Part, Part] = ("validation", "test")
SAMPLED, FULL = "", "full_"
"""Names of rankings, as prefixes of their metrics."""


@dataclass(frozen=True)
class Result:
    """One evaluation of all users under one view: `ranks[ranking][part]`."""

    ranks: Mapping[str, Mapping[Part, Ranks]]
    protocol: Protocol

    @classmethod
    def of(cls, tally: Tally, rankings: Collection[str], protocol: Protocol) -> Result:
        def ranks(name: str) -> Ranks:
            return Ranks(tally.above[name].numpy(), tally.equal[name].numpy())

        return cls({ranking: {part: ranks(f"{ranking}{part}") for part in PARTS} for ranking in rankings}, protocol)

    @property
    def sampled(self) -> Mapping[Part, Ranks]:
        return self.ranks[SAMPLED]

    @property
    def full(self) -> Mapping[Part, Ranks]:
        return self.ranks[FULL]

    def metrics(self, part: Part) -> dict[str, Any]:
        """Percent; metrics of rankings beside the first carry its name as a prefix."""
        cutoffs, ties = self.protocol.all_cutoffs, self.protocol.rank_ties
        return {
            f"{ranking}{name}": value
            for ranking, ranks in self.ranks.items()
            for name, value in ranks[part].report(cutoffs, ties).items()
        }

    def rank_arrays(self) -> dict[str, Ints]:
        """Where the test items stood among the sampled candidates, by name, for tests over users."""
        return {"above": self.sampled["test"].above, "equal": self.sampled["test"].equal}


def sampled_name(count: int) -> str:
    """How metrics of a further ranking, against `count` sampled items, begin."""
    return f"neg{count}_"


class Evaluator:
    """Held-out items and candidate sets of one split, drawn once."""

    def __init__(
        self,
        cut: Split,
        protocol: Protocol,
        seed: int,
        *,
        rankings: Collection[str] | None = None,
        users: Ints | None = None,
    ) -> None:
        """`rankings` are those agreed on, where the cut holds some users only: others may have too few items left.
        `users` are the places of those who are examined; by default everybody.
        """
        protocol.check_cutoffs(cut.items)
        self.protocol = protocol
        self.items = cut.items
        self.users = np.arange(cut.users) if users is None else users
        self.case_of = np.full(cut.users, -1)
        self.case_of[self.users] = np.arange(len(self.users))
        most = most_candidates(cut, protocol)
        cut = cut if users is None else cut.take(users)
        self._candidates = {SAMPLED: draw_candidates(cut, protocol, seed, protocol.negatives)}
        for count in protocol.more_negatives:
            if count <= most if rankings is None else sampled_name(count) in rankings:
                self._candidates[sampled_name(count)] = draw_candidates(cut, protocol, seed, count)
        self._held_out = np.stack([cut.validation, cut.test], axis=1)
        self._known = cut.training.positives.unique()
        self.ids = torch.from_numpy(cut.training.ids)
        self.cases = dict.fromkeys(PARTS, self.ids)

    @property
    def rankings(self) -> tuple[str, ...]:
        return (*self._candidates, FULL)

    def scorecard(self) -> Scorecard:
        return Scorecard(self)


class Scorecard:
    """Collects one evaluation, chunk after chunk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._of = evaluator
        self.clients = torch.from_numpy(evaluator.users)
        shape = (len(PARTS), len(evaluator.users))
        self._counts = {ranking: Ranks.unknown(shape) for ranking in evaluator.rankings}

    def add(self, clients: Tensor, logits: Tensor) -> None:
        """Rank for `clients`, given their logits (clients, items). The logits are not kept."""
        evaluator = self._of
        cases = evaluator.case_of[clients.numpy()]
        scores = ranked(logits, evaluator.protocol)
        held_out, known = evaluator._held_out, evaluator._known
        low, high = bounds(np.take_along_axis(scores, held_out[cases], axis=1), evaluator.protocol)
        full = self._counts[FULL]
        told = (held_out, known.offsets, known.values, full.above, full.equal)
        if not count_all(scores, low, high, cases, *told):
            require_scores(logits, evaluator.ids[torch.from_numpy(cases)])
        for ranking, candidates in evaluator._candidates.items():
            found = self._counts[ranking]
            for part, drawn in enumerate(candidates):
                count_some(scores, low[:, part], high[:, part], cases, drawn, found.above[part], found.equal[part])

    def tally(self) -> Tally:
        ranks = {
            ranking: {part: Ranks(found.above[number], found.equal[number]) for number, part in enumerate(PARTS)}
            for ranking, found in self._counts.items()
        }
        return tally_of(ranks, self._of.cases)

    def result(self) -> Result:
        return Result.of(self.tally(), self._of.rankings, self._of.protocol)


def tally_of(ranks: Mapping[str, Mapping[Part, Ranks]], cases: Mapping[Part, Tensor]) -> Tally:
    """What an examination tells others."""
    named = {f"{ranking}{part}": of for ranking, parts in ranks.items() for part, of in parts.items()}
    above, equal = (
        {name: torch.from_numpy(getattr(of, way)) for name, of in named.items()} for way in ("above", "equal")
    )
    return Tally({str(part): own for part, own in cases.items()}, above, equal)


def comparable(logits: Tensor, protocol: Protocol) -> Tensor:
    """What is ranked: the protocol's space of scores."""
    return torch.sigmoid(logits.float()) if protocol.score_space == "probability" else logits
