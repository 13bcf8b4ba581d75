"""Pseudo items (FedPerGNN): rows of items that a client does not have are changed as if it had them."""

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
class PseudoItems(Filter):
    """`count` rows of `table` that the client left as they were, or all of them if there are fewer, get changes drawn
    from a normal distribution, with mean and variance of the changes it made, number by number of a row.
    """

    table: str
    count: int
    name: ClassVar[str] = "pseudo items"

    def leaving(
        self, upload: Upload, agreed: Agreement, bases: Mapping[str, Tensor], key: tuple[object, ...]
    ) -> Upload:
        tables, base = dense(upload.tensors[self.table]).clone(), bases[self.table]
        for place, client in enumerate(upload.clients.tolist()):
            changes = tables[place] - base
            real = changes.any(dim=1)
            if bool(real.any()):
                generator = keyed("pseudo items", *key, client)
                others = torch.nonzero(~real)[:, 0]
                chosen = others[torch.randperm(len(others), generator=generator)[: self.count]]
                deviation, mean = torch.std_mean(changes[real].double(), dim=0, correction=0)
                drawn = torch.randn(len(chosen), len(mean), generator=generator, dtype=torch.float64)
                tables[place, chosen] += (mean + deviation * drawn).to(tables.dtype)
        return replace(upload, tensors={**upload.tensors, self.table: tables})

    def note(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        return {"items": self.count}
