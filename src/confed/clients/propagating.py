"""PerFedRec's visit: one step on all pairs at once, scored with vectors that went around the client's own graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from confed.clients.sampling import LocalRows
from confed.clients.stepping import OneStep, looked_up
from confed.random import Stream

if TYPE_CHECKING:
    from confed.clients.cohort import Cohort

_BATCH = 1024
"""By which the published code divides its penalty, whatever the number of pairs."""


@dataclass(frozen=True)
class Star:
    """The graph of a client and the positives it drew, as (clients, touched) weights; each row of the matrix sums to 1
    before some of its entries are dropped.
    """

    user: Tensor
    """(clients, 1), of the client's vector in its own next."""
    from_items: Tensor
    """Of the items' vectors in the client's next."""
    items: Tensor
    """Of the items' vectors in their own next."""
    from_user: Tensor
    """Of the client's vector in the items' next."""

    @classmethod
    def of(cls, rows: LocalRows, inside: Tensor, dropout: float, stream: Stream) -> Star:
        """`inside` (clients, touched) marks the positives that were drawn."""
        items = rows.touched.numpy()
        ids = rows.ids[:, None]

        def kept(slot: int) -> Tensor:
            coins = stream.uniform(ids, 4 * items + slot) >= dropout
            return torch.from_numpy(coins).to(inside.dtype) / (1.0 - dropout)

        alone = torch.from_numpy(stream.uniform(ids, ids * 0 + 3) >= dropout).to(inside.dtype) / (1.0 - dropout)
        degree = 1.0 + inside.sum(dim=1, keepdim=True)
        return cls(alone / degree, kept(0) * inside / degree, kept(1) * inside / 2.0, kept(2) * inside / 2.0)

    def passed(self, user: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Everybody's next vectors."""
        gathered = torch.bmm(self.from_items[:, None], items)[:, 0]
        return self.user * user + gathered, self.items[:, :, None] * items + self.from_user[:, :, None] * user[:, None]


@dataclass(frozen=True)
class RankAround(OneStep):
    """−log σ(s_i − s_j) over the pairs (i, j) that the client drew, and a penalty on the lengths of their vectors.

    The vectors of the client and its positives are means over `layers` passes around its graph and none; others stay as
    they are. `chained`: every pass begins where the last one ended; else all with the vectors as they are.
    """

    layers: int
    chained: bool
    dropout: float
    decay: float
    vector: str = "user"
    table: str = "items"
    drift: str = "drift"
    term: ClassVar[str] = "pairs"

    def train(self, cohort: Cohort, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        before = cohort.tables[self.table].clone()
        found = super().train(cohort, rows, stream)
        cohort.tables[self.drift] = cohort.tables[self.table] - before
        return found

    def loss(
        self,
        cohort: Cohort,
        params: Mapping[str, Tensor],
        tables: Mapping[str, Tensor],
        rows: LocalRows,
        stream: Stream,
    ) -> Tensor:
        user, table = params[self.vector], tables[self.table]
        liked, other = rows.local[:, 0::2], rows.local[:, 1::2]
        pairs = torch.from_numpy(rows.lengths // 2)[:, None]
        real = (torch.arange(liked.shape[1]) < pairs).to(table.dtype)
        inside = torch.zeros(table.shape[:2], dtype=table.dtype).scatter_reduce_(1, liked, real, "amax")
        seen, around = self._around(user, table, rows, inside, stream)
        chosen, against = looked_up(around, liked), looked_up(table, other)
        margin = torch.bmm(chosen - against, seen[:, :, None])[:, :, 0]
        ranked = -(logsigmoid(margin) * real).sum(dim=1) / pairs[:, 0]
        squares = (chosen.square() + against.square()).sum(dim=2) * real
        lengths = squares.sum(dim=1) + pairs[:, 0] * seen.square().sum(dim=1)
        return ranked + self.decay / (2 * _BATCH) * lengths

    def _around(
        self, user: Tensor, table: Tensor, rows: LocalRows, inside: Tensor, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        star = Star.of(rows, inside, self.dropout, stream.child("dropped"))
        users, tables = [user], [table]
        for _ in range(self.layers):
            begin = (users[-1], tables[-1]) if self.chained else (user, table)
            one, other = star.passed(*begin)
            users.append(one)
            tables.append(other)
        return torch.stack(users).mean(dim=0), torch.stack(tables).mean(dim=0)
