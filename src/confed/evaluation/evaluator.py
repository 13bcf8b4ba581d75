"""Ranks held-out items. The only place that knows them.

Scores arrive as (clients, items) chunks in any order; sampled and full ranking, validation and test are read off each
chunk in a few batched operations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from confed.data.split import Split
from confed.evaluation.candidates import draw_candidates, most_candidates
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

    def __init__(self, cut: Split, protocol: Protocol, seed: int, *, rankings: Collection[str] | None = None) -> None:
        """`rankings` are those agreed on, where the cut holds some users only: others may have too few items left."""
        protocol.check_cutoffs(cut.items)
        self.protocol = protocol
        self.users = cut.users
        self.items = cut.items
        self._candidates = {SAMPLED: _candidates(cut, protocol, seed, protocol.negatives)}
        for count in protocol.more_negatives:
            if count <= most_candidates(cut, protocol) if rankings is None else sampled_name(count) in rankings:
                self._candidates[sampled_name(count)] = _candidates(cut, protocol, seed, count)
        self._held_out = {"validation": torch.from_numpy(cut.validation), "test": torch.from_numpy(cut.test)}
        self._training = cut.training.positives
        self.ids = torch.from_numpy(cut.training.ids)
        self.cases = dict.fromkeys(PARTS, self.ids)

    @property
    def rankings(self) -> tuple[str, ...]:
        return (*self._candidates, FULL)

    def scorecard(self) -> Scorecard:
        return Scorecard(self)


def _candidates(cut: Split, protocol: Protocol, seed: int, count: int) -> dict[Part, Tensor]:
    drawn = draw_candidates(cut, protocol, seed, count)
    return {part: torch.from_numpy(of_part) for part, of_part in zip(PARTS, drawn, strict=True)}


class Scorecard:
    """Collects one evaluation, chunk after chunk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._of = evaluator
        self.clients = torch.arange(evaluator.users)
        self._ranks = {
            ranking: {part: Ranks.unknown(evaluator.users) for part in PARTS} for ranking in evaluator.rankings
        }

    def add(self, clients: Tensor, logits: Tensor) -> None:
        """Rank for `clients`, given their logits (clients, items). The logits are not kept."""
        evaluator = self._of
        require_scores(logits, evaluator.ids[clients])
        scores = comparable(logits, evaluator.protocol)
        for ranking, candidates in evaluator._candidates.items():
            for part in PARTS:
                target = evaluator._held_out[part][clients, None]
                others = scores.gather(1, candidates[part][clients].long())
                self._write(clients, part, ranking, scores.gather(1, target), others)
        self._add_full(clients, scores)

    def _add_full(self, clients: Tensor, scores: Tensor) -> None:
        """All items but those the user is known to have (D-4): training; at test also the validation item.

        The held-out item's score is read before anything is hidden, because data with repeated pairs may hold out
        an item that is also a training item.
        """
        evaluator = self._of
        held_out = {part: evaluator._held_out[part][clients, None] for part in PARTS}
        target_scores = {part: scores.gather(1, held_out[part]) for part in PARTS}
        known = evaluator._training.take(clients.numpy())
        rest = scores.clone()
        rest[torch.from_numpy(known.row_of), torch.from_numpy(known.values)] = -torch.inf
        validation = held_out["validation"]
        rest.scatter_(1, validation, -torch.inf)
        self._write(clients, "validation", FULL, target_scores["validation"], rest)
        rest.scatter_(1, held_out["test"], -torch.inf)
        self._write(clients, "test", FULL, target_scores["test"], rest)

    def _write(self, clients: Tensor, part: Part, ranking: str, target: Tensor, others: Tensor) -> None:
        self._ranks[ranking][part].write(clients.numpy(), target, others)

    def tally(self) -> Tally:
        return tally_of(self._ranks, self._of.cases)

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
