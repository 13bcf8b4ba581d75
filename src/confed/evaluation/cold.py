"""Ranks what users who are new to a domain took up there, one interaction after another (D-5, `cold`).

Every held-out interaction is ranked against items that somebody trained on, without the user's own held-out ones:
sampled, and all of them. Metrics are means over interactions. CDRIB draws its candidates with replacement; ours are
distinct.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.data.domain_split import ColdSplit
from confed.errors import ConfedError
from confed.evaluation.evaluator import FULL, PARTS, SAMPLED, Part, Result, comparable, tally_of
from confed.evaluation.metrics import Ranks
from confed.messages import Tally
from confed.protocol import Protocol
from confed.ragged import Ragged
from confed.random import Stream
from confed.soundness import require_scores


class ColdEvaluator:
    """The held-out interactions of a domain's new users, and candidates for each, drawn once."""

    rankings = (SAMPLED, FULL)

    def __init__(self, cut: ColdSplit, protocol: Protocol, seed: int) -> None:
        self.protocol = protocol
        self.ids = torch.from_numpy(cut.training.ids)
        self._held_out = {"validation": cut.validation, "test": cut.test}
        self.trained = np.unique(cut.training.positives.values)
        lengths = sum(held.lengths for held in self._held_out.values())
        self.clients = torch.from_numpy(np.flatnonzero(lengths))
        self._candidates: dict[Part, Tensor] = {
            part: torch.from_numpy(
                self._draw(self._held_out[part], protocol.negatives, Stream.of(seed, f"cold/{part}"))
            )
            for part in PARTS
        }
        self.cases: dict[Part, Tensor] = {part: torch.arange(len(self._held_out[part].values)) for part in PARTS}
        protocol.check_cutoffs(cut.items)

    def _draw(self, held_out: Ragged, count: int, stream: Stream) -> NDArray[np.int32]:
        """(interactions, count) items that were trained on and that the user does not have."""
        place = np.searchsorted(self.trained, held_out.values)
        there = self.trained[np.minimum(place, len(self.trained) - 1)] == held_out.values
        own = Ragged.group(held_out.row_of[there], place[there], len(held_out))
        row = held_out.row_of
        pool = len(self.trained) - own.lengths[row]
        if (pool < count).any():
            fewer = max(int(pool.min()) // 2, 1)
            raise ConfedError(
                f"{count} sampled candidates are asked for, but only {int(pool.min())} items were trained on: "
                f"lower `negatives`, and `select_metric` with it "
                f"(--set negatives={fewer} --set select_metric=mrr@{fewer + 1})"
            )
        drawn = np.empty((len(row), count), dtype=np.int32)
        for case in np.array_split(np.arange(len(row)), max(len(row) * count >> 22, 1)):
            ranks = stream.distinct(case, np.zeros_like(case), pool[case], count).reshape(-1)
            places = own.outside(np.repeat(row[case], count), ranks)
            drawn[case] = self.trained[places].reshape(-1, count)
        return drawn

    def scorecard(self) -> ColdScorecard:
        return ColdScorecard(self)


class ColdScorecard:
    """Collects one evaluation, chunk after chunk."""

    def __init__(self, evaluator: ColdEvaluator) -> None:
        self._of = evaluator
        self.clients = evaluator.clients
        self._ranks = {
            ranking: {part: Ranks.unknown(len(evaluator._held_out[part].values)) for part in PARTS}
            for ranking in evaluator.rankings
        }

    def add(self, clients: Tensor, logits: Tensor) -> None:
        """Rank what `clients` took up, given their logits (clients, items)."""
        evaluator = self._of
        require_scores(logits, evaluator.ids[clients])
        scores = comparable(logits, evaluator.protocol)
        for part in PARTS:
            held = evaluator._held_out[part]
            cases = Ragged(held.offsets, np.arange(len(held.values))).take(clients.numpy())
            row, case = torch.from_numpy(cases.row_of), torch.from_numpy(cases.values)
            target = scores[row, torch.from_numpy(held.values)[case]][:, None]
            sampled = scores[row[:, None], evaluator._candidates[part][case].long()]
            self._ranks[SAMPLED][part].write(cases.values, target, sampled)
            self._ranks[FULL][part].write(cases.values, target, self._others(scores, part, clients)[row])

    def _others(self, scores: Tensor, part: Part, clients: Tensor) -> Tensor:
        """The scores of all items that were trained on, without those the user has."""
        own = self._of._held_out[part].take(clients.numpy())
        rest = torch.full_like(scores, -torch.inf)
        trained = torch.from_numpy(self._of.trained)
        rest[:, trained] = scores[:, trained]
        rest[torch.from_numpy(own.row_of), torch.from_numpy(own.values)] = -torch.inf
        return rest

    def tally(self) -> Tally:
        return tally_of(self._ranks, self._of.cases)

    def result(self) -> Result:
        return Result.of(self.tally(), self._of.rankings, self._of.protocol)
