"""FedPerGNN's visit: one step on all rows at once, scored by the client's graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from confed.clients.backbones import UserGraph
from confed.clients.sampling import LocalRows
from confed.clients.stepping import OneStep, looked_up
from confed.random import Stream

if TYPE_CHECKING:
    from confed.clients.cohort import Cohort


@dataclass(frozen=True)
class GraphStep(OneStep):
    """Cross-entropy; numbers of u and of the items that are scored are dropped with probability `dropout`."""

    dropout: float
    table: str = "items"
    term: ClassVar[str] = "bce"

    def loss(
        self,
        cohort: Cohort,
        params: Mapping[str, Tensor],
        tables: Mapping[str, Tensor],
        rows: LocalRows,
        stream: Stream,
    ) -> Tensor:
        backbone = cohort.backbone
        assert isinstance(backbone, UserGraph), "there is no other graph to score with"
        table = tables[self.table]
        places, present = _history(rows, backbone.history)
        coins = stream.child("dropped")
        user = backbone.user(
            params, looked_up(table, places), present, self._kept(coins.child("user"), rows, 1, table)[:, 0]
        )
        targets = backbone.targets(params, looked_up(table, rows.local))
        targets = targets * self._kept(coins.child("items"), rows, rows.local.shape[1], table)
        scores = backbone.score(params, user, targets)
        losses = binary_cross_entropy_with_logits(scores, rows.labels, reduction="none")
        lengths = torch.from_numpy(rows.lengths)[:, None]
        real = torch.arange(scores.shape[1]) < lengths
        return (losses * real).sum(dim=1) / lengths[:, 0]

    def _kept(self, coins: Stream, rows: LocalRows, count: int, like: Tensor) -> Tensor:
        """(clients, count, width): 0, or what makes up for those that are."""
        kept = coins.at_least(self.dropout, rows.ids, count * like.shape[2])
        return torch.from_numpy(kept).view(-1, count, like.shape[2]).to(like.dtype) / (1.0 - self.dropout)


def _history(rows: LocalRows, most: int) -> tuple[Tensor, Tensor]:
    """(clients, most) places in the tables of each client's first items by number, and which are there."""
    beyond = int(rows.touched.max()) + 1
    numbers = torch.where(rows.liked(), rows.touched, beyond)
    ordered, places = torch.sort(numbers, dim=1, stable=True)
    return places[:, :most], ordered[:, :most] < beyond
