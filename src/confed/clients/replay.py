"""Some people as they were scored in a round, rebuilt from what was kept of it: to serve them, and to look at them.

Nothing of the run changes by it: the clients looked at are held in a gateway of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from confed.clients.backbones import Backbone
from confed.clients.gateway import People
from confed.clients.standing import ready
from confed.messages import Download

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Replay:
    """Client axis first; of size 1 where all have the same."""

    backbone: Backbone
    trained: Tensor
    """(clients,): who trained in the round, and is seen after it."""
    params: Tensors
    tables: Tensors
    """Whole item tables with which they were scored."""
    received: Tensors
    """The same before their training."""
    liked: Tensor
    """(clients, items): their training positives."""

    @classmethod
    def of(cls, gateway: People, download: Download, number: int, trains: Tensor) -> Replay:
        """All clients of the gateway; those marked in `trains` after their local training in round `number`."""
        everybody = torch.arange(len(gateway.ids))
        backbone, store = gateway.backbone, gateway.store
        params, tables, liked = ready(backbone, store, download, everybody, gateway.data.positives)
        received = tables
        if gateway.procedure.reconstruct:
            anew = gateway.reconstructed(download, everybody.numpy())
            params = {n: value[torch.argsort(anew.clients)] for n, value in anew.params.items()}
        if bool(trains.any()):
            cohort = gateway.train_chunk(number, download, everybody[trains].numpy())
            trained = cohort.whole_tables()
            place, clients = cohort.clients, len(everybody)
            params = {n: _replaced(value, clients, place, cohort.params[n]) for n, value in params.items()}
            tables = {n: _replaced(value, clients, place, trained[n]) for n, value in tables.items()}
        return cls(backbone, trains, params, tables, received, liked)

    def scores(self) -> Tensor:
        """(clients, items) logits."""
        return self.backbone.logits(self.params, self.backbone.look(self.params, self.tables, self.liked))

    def two_tables(self) -> tuple[Tensor, Tensor] | None:
        """(clients, items, d) twice: the shared table as clients look at it, and their own; None where they score with
        one table only.
        """
        if not self.backbone.views:
            return None
        seen = self.backbone.look(self.params, self.tables, self.liked)
        shared, own = (self._of_each(seen[name]) for name in self.backbone.views)
        return shared, own

    def two_scores(self) -> tuple[Tensor, Tensor]:
        """(clients, items) twice: by what everybody shares, and by what is their own.

        With two tables by each of them alone; else by the table they received and by what they made of it, with the
        same head, of those who trained.
        """
        backbone = self.backbone
        if not backbone.views:
            before, after = (backbone.logits(self.params, tables) for tables in (self.received, self.tables))
            return before[self.trained], after[self.trained]
        seen = backbone.look(self.params, self.tables, self.liked)
        shared, own = (backbone.scored_alone(self.params, seen[name]) for name in backbone.views)
        return shared, own

    def shared_tables(self, which: Tensors | None = None) -> Tensor | None:
        """(clients, items, d): the shared item tables, side by side; None where no table is shared."""
        names = self.backbone.shared_vectors()
        tables = self.tables if which is None else which
        return torch.cat([self._of_each(tables[name]) for name in names], dim=2) if names else None

    def drift(self) -> Tensor | None:
        """(clients,): how far training took the shared item tables, as a root mean square over entries."""
        before, after = self.shared_tables(self.received), self.shared_tables()
        if before is None or after is None:
            return None
        return (after - before).square().mean(dim=(1, 2), dtype=torch.float64).sqrt()

    def _of_each(self, tensor: Tensor) -> Tensor:
        return tensor.expand(len(self.trained), *tensor.shape[1:])


def _replaced(values: Tensor, clients: int, place: Tensor, by: Tensor) -> Tensor:
    """`values`, whose client axis may be 1, one for each client, with those at `place` replaced."""
    whole = values.expand(clients, *values.shape[1:]).clone()
    whole[place] = by.to(whole.dtype)
    return whole
