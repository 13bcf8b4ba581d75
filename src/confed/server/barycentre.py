"""The server of a federation of companies: every person's rows, averaged over the companies that know the person.

For diagonal Gaussians that is the exact Wasserstein barycentre, (Liu et al. 2023, Eq. 7)

    μ̂_i = mean_k μ_i^(k),   σ̂_i = mean_k σ_i^(k),

over the domains k that sent something about person i; where nobody did, the old row stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from confed.messages import PeopleRows


class Barycentre:
    """Knows people by number, and of each the mean of what was sent."""

    def __init__(self, people: int, start: Mapping[str, Tensor] | None = None) -> None:
        self.people = people
        self.tables: dict[str, Tensor] = dict(start or {})

    def aggregate(self, uploads: Sequence[PeopleRows]) -> None:
        counts = torch.zeros(self.people, dtype=torch.float64)
        for upload in uploads:
            counts.index_add_(0, upload.people, torch.ones(len(upload.people), dtype=torch.float64))
        for name in uploads[0].tensors:
            first = uploads[0].tensors[name]
            total = torch.zeros(self.people, first.shape[1], dtype=torch.float64)
            for upload in uploads:
                total.index_add_(0, upload.people, upload.tensors[name].double())
            before = self.tables.get(name, torch.zeros_like(total)).double()
            mean = torch.where(counts[:, None] > 0, total / counts[:, None].clamp_min(1), before)
            self.tables[name] = mean.to(first.dtype)

    def download(self, people: Tensor) -> PeopleRows | None:
        """What the server knows of `people`; nothing before the first round, unless it began with something."""
        if not self.tables:
            return None
        return PeopleRows(people, {name: table.index_select(0, people) for name, table in self.tables.items()})

    def state(self) -> dict[str, Tensor]:
        return dict(self.tables)

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.tables = dict(state)
