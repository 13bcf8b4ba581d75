"""What clients keep between rounds: private and persistent parameters, all clients in one tensor a parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from confed.clients.backbones import Backbone
from confed.copies import require_room_for_copies
from confed.messages import Push


class ClientStore:
    """Kept parameters, client axis first. A kept item table is one dense (clients, items, d) tensor."""

    def __init__(self, backbone: Backbone, clients: int, seed: int, dtype: torch.dtype, *, copies: int = 1) -> None:
        """`copies` of everything will be held at once in the end: this one, and what its owner remembers."""
        require_memory(backbone, clients, dtype, copies)
        self.tensors = {
            spec.name: spec.initial(seed, dtype).expand(clients, *spec.shape).clone()
            for spec in backbone.named(kept=True)
        }
        self._items = {spec.name: spec.shape[0] for spec in backbone.named(role="item", kept=True)}

    def read(self, names: Iterable[str], clients: Tensor) -> dict[str, Tensor]:
        """Copies of whole parameters."""
        return {name: self.tensors[name].index_select(0, clients) for name in names}

    def write(self, values: Mapping[str, Tensor], clients: Tensor) -> None:
        for name, value in values.items():
            self.tensors[name].index_copy_(0, clients, value)

    def read_rows(self, name: str, clients: Tensor, index: Tensor) -> Tensor:
        """Rows `index` (clients, n) of a kept table; padding reads the last row, which nobody will look up."""
        table, flat = self._flat(name, clients, index.clamp(max=self._items[name] - 1))
        return table.index_select(0, flat).view(*index.shape, -1)

    def write_rows(self, name: str, clients: Tensor, index: Tensor, rows: Tensor) -> None:
        real = (index < self._items[name]).reshape(-1)
        table, flat = self._flat(name, clients, index)
        table.index_copy_(0, flat[real], rows.reshape(-1, rows.shape[-1])[real])

    def scale(self, name: str, clients: Tensor, factors: Tensor) -> None:
        """Multiply whole tables, each by its client's factor."""
        table = self.tensors[name]
        table.index_copy_(0, clients, table.index_select(0, clients) * factors[:, None, None].to(table.dtype))

    def receive(self, push: Push) -> None:
        """Replace the tables of the clients who are pushed another."""
        for number in range(push.versions):
            clients = torch.nonzero(push.table_of == number)[:, 0]
            for name, tables in push.tables.items():
                self.tensors[name].index_copy_(0, clients, tables[number].expand(len(clients), -1, -1))

    def _flat(self, name: str, clients: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        table = self.tensors[name]
        flat = (clients[:, None] * self._items[name] + index).reshape(-1)
        return table.view(-1, table.shape[-1]), flat


def require_memory(backbone: Backbone, clients: int, dtype: torch.dtype, copies: int) -> None:
    """Kept item tables grow with clients x items: say so before the machine does."""
    values = clients * sum(math.prod(spec.shape) for spec in backbone.named(kept=True))
    remedy = "use fewer users or items, or a smaller `dim`"
    require_room_for_copies(f"what {clients:,} clients keep", values * dtype.itemsize, copies, remedy)
