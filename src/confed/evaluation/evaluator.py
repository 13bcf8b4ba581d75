"""Ranks held-out items. The only place that knows them.

Scores arrive as (clients, items) chunks in any order; sampled and full ranking, validation and test are read off each
chunk in a few batched operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from confed.data.split import Split
from confed.evaluation.candidates import draw_candidates
from confed.evaluation.metrics import Ranks
from confed.evaluation.protocol import Protocol

Part = Literal["validation", "test"]
PARTS: tuple[Part, Part] = ("validation", "test")


@dataclass(frozen=True)
class Result:
    """One evaluation of all users under one view."""

    sampled: dict[Part, Ranks]
    full: dict[Part, Ranks]
    protocol: Protocol

    def metrics(self, part: Part) -> dict[str, float]:
        """Percent; the metrics of the full ranking carry the prefix `full_`."""
        cutoffs, ties = self.protocol.all_cutoffs, self.protocol.rank_ties
        full = self.full[part].report(cutoffs, ties)
        return self.sampled[part].report(cutoffs, ties) | {f"full_{name}": value for name, value in full.items()}


class Evaluator:
    """Held-out items and candidate sets of one split, drawn once."""

    def __init__(self, cut: Split, protocol: Protocol, seed: int) -> None:
        protocol.check_cutoffs(cut.items)
        self.protocol = protocol
        self.users = cut.users
        self.items = cut.items
        drawn = draw_candidates(cut, protocol, seed)
        # Millions of users have hundreds of millions of candidates: half the memory of int64.
        self._candidates = {part: torch.from_numpy(c.astype(np.int32)) for part, c in zip(PARTS, drawn, strict=True)}
        self._held_out = {"validation": torch.from_numpy(cut.validation), "test": torch.from_numpy(cut.test)}
        self._training = cut.training.positives

    def scorecard(self) -> Scorecard:
        return Scorecard(self)


class Scorecard:
    """Collects one evaluation, chunk after chunk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._of = evaluator
        self._above = {key: np.full(evaluator.users, -1, dtype=np.int64) for key in _KEYS}
        self._equal = {key: np.zeros(evaluator.users, dtype=np.int64) for key in _KEYS}

    def add(self, clients: Tensor, logits: Tensor) -> None:
        """Rank for `clients`, given their logits (clients, items). The logits are not kept."""
        evaluator = self._of
        scores = torch.sigmoid(logits.float()) if evaluator.protocol.score_space == "probability" else logits
        scores = torch.nan_to_num(scores, nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf)
        for part in PARTS:
            target = evaluator._held_out[part][clients, None]
            candidates = scores.gather(1, evaluator._candidates[part][clients].long())
            self._write(clients, (part, "sampled"), scores.gather(1, target), candidates)
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
        self._write(clients, ("validation", "full"), target_scores["validation"], rest)
        rest.scatter_(1, held_out["test"], -torch.inf)
        self._write(clients, ("test", "full"), target_scores["test"], rest)

    def _write(self, clients: Tensor, key: tuple[Part, str], target: Tensor, others: Tensor) -> None:
        rows = clients.numpy()
        above = (others > target).sum(dim=1, dtype=torch.int32)
        equal = (others == target).sum(dim=1, dtype=torch.int32)
        unranked = torch.isinf(target[:, 0])
        self._above[key][rows] = above.masked_fill(unranked, -1).numpy()
        self._equal[key][rows] = equal.masked_fill(unranked, 0).numpy()

    def result(self) -> Result:
        ranks = {key: Ranks(self._above[key], self._equal[key]) for key in _KEYS}
        return Result(
            sampled={part: ranks[part, "sampled"] for part in PARTS},
            full={part: ranks[part, "full"] for part in PARTS},
            protocol=self._of.protocol,
        )


_KEYS: list[tuple[Part, str]] = [(part, ranking) for part in PARTS for ranking in ("sampled", "full")]
