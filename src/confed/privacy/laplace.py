"""Laplace noise as the originals have it: on some rows of a table (PerFedRec), on all of a clipped change (FedPerGNN).

No ε is claimed for either. The rows are drawn without regard to which the client changed, so most of the noise falls on
rows that say nothing; and a change is clipped by its Euclidean length, where Laplace noise would call for the sum of
its absolute numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from confed.messages import Agreement, Upload, dense
from confed.privacy.filters import Filter
from confed.random import keyed


@dataclass(frozen=True)
class LaplaceRows(Filter):
    """Adds noise to `rows` rows of `table`, drawn with replacement, or to all of them."""

    table: str
    rows: int | None
    scale: float
    name: ClassVar[str] = "noise on some rows"

    def leaving(
        self, upload: Upload, agreed: Agreement, bases: Mapping[str, Tensor], key: tuple[object, ...]
    ) -> Upload:
        tables = dense(upload.tensors[self.table]).clone()
        for place, client in enumerate(upload.clients.tolist()):
            generator = keyed("laplace rows", *key, client)
            everything = torch.arange(tables.shape[1])
            chosen = (
                everything if self.rows is None else torch.randint(len(everything), (self.rows,), generator=generator)
            )
            noise = self.scale * _laplace((len(chosen), tables.shape[2]), generator)
            tables[place].index_add_(0, chosen, noise.to(tables.dtype))
        return replace(upload, tensors={**upload.tensors, self.table: tables})

    def note(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        return {"rows": self.rows or "all", "scale": self.scale}


@dataclass(frozen=True)
class ClippedLaplace(Filter):
    """What a client changed, in all that is averaged and in what is personal, is clipped as one to the length `clip`;
    then every number gets noise.
    """

    clip: float
    scale: float
    name: ClassVar[str] = "clipped, with Laplace noise"

    def leaving(
        self, upload: Upload, agreed: Agreement, bases: Mapping[str, Tensor], key: tuple[object, ...]
    ) -> Upload:
        began = {**{name: bases[name] for name in agreed.plan}, **_personal(upload)}
        changes = {name: (dense(upload.tensors[name]) - of).double() for name, of in began.items()}
        lengths = torch.stack([change.flatten(1).square().sum(dim=1) for change in changes.values()]).sum(dim=0).sqrt()
        shrink = self.clip / lengths.clamp(min=self.clip)
        sent = {name: change * shrink.view(-1, *[1] * (change.dim() - 1)) for name, change in changes.items()}
        for place, client in enumerate(upload.clients.tolist()) if self.scale else ():
            generator = keyed("laplace", *key, client)
            for change in sent.values():
                change[place] += self.scale * _laplace(change.shape[1:], generator)
        whole = {name: (began[name].double() + change).to(began[name].dtype) for name, change in sent.items()}
        return replace(upload, tensors={**upload.tensors, **whole})

    def note(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        return {"clip": self.clip, "scale": self.scale}


def _personal(upload: Upload) -> dict[str, Tensor]:
    """What clients received of the personal parameters that they send."""
    return {name: of for name, of in upload.began.items() if name in upload.tensors}


def _laplace(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Of scale 1."""
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5
    return -drawn.sign() * torch.log1p(-2.0 * drawn.abs())
