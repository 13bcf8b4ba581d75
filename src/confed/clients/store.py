"""What clients keep between rounds: their private parameters, all clients in one tensor a parameter."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from confed.clients.backbones import Backbone
from confed.errors import ConfedError


class ClientStore:
    """Private parameters, client axis first. A private item table is one dense (clients, items, d) tensor."""

    def __init__(self, backbone: Backbone, clients: int, seed: int, dtype: torch.dtype) -> None:
        _require_memory(backbone, clients, dtype)
        self.tensors = {
            spec.name: spec.initial(seed, dtype).expand(clients, *spec.shape).clone()
            for spec in backbone.named(scope="private")
        }
        self._items = {spec.name: spec.shape[0] for spec in backbone.named(role="item", scope="private")}

    def read(self, names: Iterable[str], clients: Tensor) -> dict[str, Tensor]:
        """Copies of whole parameters."""
        return {name: self.tensors[name].index_select(0, clients) for name in names}

    def write(self, values: Mapping[str, Tensor], clients: Tensor) -> None:
        for name, value in values.items():
            self.tensors[name].index_copy_(0, clients, value)

    def read_rows(self, name: str, clients: Tensor, index: Tensor) -> Tensor:
        """Rows `index` (clients, n) of a private table; padding reads the last row, which nobody will look up."""
        table, flat = self._flat(name, clients, index.clamp(max=self._items[name] - 1))
        return table.index_select(0, flat).view(*index.shape, -1)

    def write_rows(self, name: str, clients: Tensor, index: Tensor, rows: Tensor) -> None:
        real = (index < self._items[name]).reshape(-1)
        table, flat = self._flat(name, clients, index)
        table.index_copy_(0, flat[real], rows.reshape(-1, rows.shape[-1])[real])

    def _flat(self, name: str, clients: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        table = self.tensors[name]
        flat = (clients[:, None] * self._items[name] + index).reshape(-1)
        return table.view(-1, table.shape[-1]), flat


def _require_memory(backbone: Backbone, clients: int, dtype: torch.dtype) -> None:
    """Private item tables grow with clients x items: say so before the machine does."""
    values = clients * sum(math.prod(spec.shape) for spec in backbone.named(scope="private"))
    needed, available = values * dtype.itemsize, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > available:
        raise ConfedError(
            f"the private parameters of {clients:,} clients take {needed / 1e9:.1f} GB and this machine has "
            f"{available / 1e9:.1f} GB: use fewer users or items, or a smaller `dim`"
        )
