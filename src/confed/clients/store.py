"""What clients keep between rounds: private and persistent parameters of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from confed.clients.backbones import Backbone, ParamSpec
from confed.clients.kept_rows import PLACE_BYTES, KeptRows
from confed.copies import require_room_for_copies
from confed.messages import Push
from confed.room import require_room


class ClientStore:
    """Kept parameters, client axis first. A kept item table is one dense (clients, items, d) tensor where it is sent,
    or trained, as a whole; else only its rows that changed are stored.
    """

    def __init__(
        self,
        backbone: Backbone,
        clients: int,
        seed: int,
        dtype: torch.dtype,
        *,
        whole: bool = False,
        touched: int = 0,
        copies: int = 1,
    ) -> None:
        """`whole`: item tables are trained as a whole; else all clients will have `touched` so many rows in the end.
        `copies` of everything will be held at once then: this one, and what its owner remembers.
        """
        require_memory(backbone, clients, dtype, whole=whole, touched=touched, copies=copies)
        dense, by_row = _kinds(backbone, whole=whole)
        self.tensors = {spec.name: spec.initial(seed, dtype).expand(clients, *spec.shape).clone() for spec in dense}
        self.by_row = {spec.name: KeptRows(spec.initial(seed, dtype), clients) for spec in by_row}
        self._until_next = [spec.name for spec in by_row if spec.lifetime == "until next"]
        self._items = {spec.name: spec.shape[0] for spec in dense if spec.role == "item"}

    def state(self) -> dict[str, Tensor]:
        """By name; parts of a table of which rows are stored carry its name in front."""
        kept = {f"{table}.{part}": value for table, rows in self.by_row.items() for part, value in rows.state().items()}
        return self.tensors | kept

    def load(self, state: Mapping[str, Tensor]) -> None:
        for name, value in self.tensors.items():
            value.copy_(state[name])
        for table, rows in self.by_row.items():
            own = {name: value for name, value in state.items() if name.startswith(f"{table}.")}
            rows.load({name.removeprefix(f"{table}."): value for name, value in own.items()})

    def read(self, names: Iterable[str], clients: Tensor) -> dict[str, Tensor]:
        """Copies of whole parameters."""
        return {name: self.tensors[name].index_select(0, clients) for name in names}

    def write(self, values: Mapping[str, Tensor], clients: Tensor) -> None:
        for name, value in values.items():
            self.tensors[name].index_copy_(0, clients, value)

    def read_rows(self, name: str, clients: Tensor, index: Tensor) -> Tensor:
        """Rows `index` (clients, n) of a kept table; padding reads something that nobody will look up."""
        if name in self.by_row:
            return self.by_row[name].read(clients, index)
        table, flat = self._flat(name, clients, index.clamp(max=self._items[name] - 1))
        return table.index_select(0, flat).view(*index.shape, -1)

    def read_tables(self, name: str, clients: Tensor) -> Tensor:
        """(clients, items, d): copies of a kept table, whole."""
        return self.by_row[name].whole(clients) if name in self.by_row else self.tensors[name].index_select(0, clients)

    def write_rows(self, name: str, clients: Tensor, index: Tensor, rows: Tensor) -> None:
        if name in self.by_row:
            self.by_row[name].write(clients, index, rows)
            return
        real = (index < self._items[name]).reshape(-1)
        table, flat = self._flat(name, clients, index)
        table.index_copy_(0, flat[real], rows.reshape(-1, rows.shape[-1])[real])

    def scale(self, name: str, clients: Tensor, factors: Tensor) -> None:
        """Multiply whole tables, each by its client's factor."""
        if name in self.by_row:
            self.by_row[name].decay(clients, factors)
            return
        table = self.tensors[name]
        table.index_copy_(0, clients, table.index_select(0, clients) * factors[:, None, None].to(table.dtype))

    def begin_round(self) -> None:
        """Forget what was kept of the last one."""
        for name in self._until_next:
            self.by_row[name].clear()

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


def require_memory(
    backbone: Backbone, clients: int, dtype: torch.dtype, *, whole: bool, touched: int, copies: int
) -> None:
    """Kept item tables grow with clients x items, or with the rows that are touched: say so before the machine does."""
    dense, by_row = _kinds(backbone, whole=whole)
    values = clients * sum(math.prod(spec.shape) for spec in dense) + touched * sum(spec.shape[1] for spec in by_row)
    places = clients * sum(spec.shape[0] for spec in by_row) * PLACE_BYTES
    what, remedy = f"what {clients:,} clients keep", "use fewer users, items or rounds, or a smaller `dim`"
    require_room_for_copies(what, values * dtype.itemsize, copies, remedy)
    require_room(what, values * dtype.itemsize + places, remedy)


def _kinds(backbone: Backbone, *, whole: bool) -> tuple[list[ParamSpec], list[ParamSpec]]:
    """Kept parameters that are stored as they are, and item tables of which rows are stored."""
    kept = backbone.named(kept=True)
    by_row = [] if whole else [spec for spec in kept if spec.role == "item" and spec.scope == "private"]
    return [spec for spec in kept if spec not in by_row], by_row
