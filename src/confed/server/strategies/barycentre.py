"""The server of a federation of companies: every person's rows, averaged over the companies that know the person.

For diagonal Gaussians that is the exact Wasserstein barycentre, (Liu et al. 2023, Eq. 7)

    μ̂_i = mean_k μ_i^(k),   σ̂_i = mean_k σ_i^(k),

over the domains k that sent something about person i; where nobody did, the old row stays. It is a mean over holders
like any other, of tables whose rows are people. A company hears about its own people only, and nothing before the first
round, unless the server began with something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from confed.messages import Download
from confed.server.strategies.average import Average
from confed.server.uploads import Uploads


class Barycentre(Average):
    """`known` says, company by company, which people it shares with others."""

    def __init__(self, names: Sequence[str], known: Sequence[Tensor]) -> None:
        """Who sends nothing about people does not say its loss either."""
        super().__init__(dict.fromkeys(names, "holders"))
        self.uploads = frozenset({*names, "loss"} if names else ())
        self.known = known

    def download(self, clients: Tensor) -> Download:
        tables = {name: table[None] for name, table in self._shared.items()}
        return Download(tables, torch.zeros(len(self.known), dtype=torch.int64), told=self.known)

    def aggregate(self, uploads: Uploads, number: int) -> None:
        self._shared = {name: uploads.mean(name) for name in self.plan}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._shared = dict(state)
