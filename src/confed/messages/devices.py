"""What crosses the line between clients and the server: `Download`, `Upload` and `Push`.

Each holds the messages of many clients at once, and can be cut down to some of them; what a single client gets or sends
is the message cut down to that client, and sizes are those of its bytes. On the server's side clients are counted by
their places among all, on a gateway's side by their places among its own: `of` leads from one to the other. Uploads say
who sent them by the clients' ids.

The tables of people have a row for each item and travel whole, so that they do not tell which rows somebody touched.
Those of companies have a row for each person whom several companies know; every company hears and tells only of its
own, and its messages name these `rows`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from confed.messages.tables import Sent, dense
from confed.messages.wire import Schema, decode, encode
from confed.tensors import joined, part_of


@dataclass(frozen=True)
class Download:
    """`tables[name]` holds g versions of a shared tensor; client u receives version `table_of[u]`, −1 none."""

    tables: Mapping[str, Tensor]
    table_of: Tensor
    side: Mapping[str, Tensor] = field(default_factory=dict)
    """What everybody receives beside the tables."""
    own: Mapping[str, Tensor] = field(default_factory=dict)
    """What the server has for single clients: `own[name][own_of[u]]` is for client u alone."""
    own_of: Tensor | None = None
    """(clients,): −1 is nothing; not said: there is nothing for anybody."""

    alike: Tensor | None = None
    """(clients,): those with the same number from 0 upwards begin the round with the same tables; −1 is nobody.

    A holder of many clients computes once what these would each compute; to a single client it says nothing.
    """

    told: Sequence[Tensor] | None = None
    """By client, the rows of the tables that it may see; not said: all. The server knows it; it does not travel."""

    rows: Tensor | None = None
    """Which rows of the server's tables these are, ascending; not said: all."""

    def of(self, places: Tensor) -> Download:
        """What the clients at `places` receive: the versions and rows they get, and no others."""
        tables, table_of = _versions_of(self.tables, self.table_of[places])
        rows = None
        if self.told is not None and tables:
            rows = torch.unique(torch.cat([self.told[place] for place in places.tolist()]))
            tables = {name: versions.index_select(1, rows) for name, versions in tables.items()}
        own, own_of = self.own, self.own_of
        if own_of is not None:
            own, own_of = _versions_of(own, own_of[places])
        return Download(tables, table_of, self.side, own, own_of, _still_alike(self.alike, places), rows=rows)

    def own_to(self, places: Tensor, names: Collection[str] | None = None) -> dict[str, Tensor]:
        """(clients, …) by name: what each of the clients at `places` has for itself, or some of it."""
        if self.own_of is None:
            return {}
        some = {name: self.own[name] for name in (self.own if names is None else names)}
        return {name: of.index_select(0, self.own_of[places]) for name, of in some.items()}

    def with_own(self, changed: Mapping[str, Tensor], places: Tensor) -> Download:
        """The same, with other values for the clients at `places`, as if the server had got them."""
        if self.own_of is None or not changed:
            return self
        places = self.own_of[places]
        return replace(
            self, own={**self.own, **{n: self.own[n].index_copy(0, places, to) for n, to in changed.items()}}
        )

    def reaches(self, places: Tensor) -> bool:
        """Whether there is something for each of these clients, of all that there is."""
        served = not self.tables or bool((self.table_of[places] >= 0).all())
        return served and (self.own_of is None or bool((self.own_of[places] >= 0).all()))

    def bytes_to(self, places: Tensor) -> int:
        """Of the messages of the clients at `places`; nothing is sent where there is nothing to tell."""
        if not len(places) or not (self.tables or self.side or self.own):
            return 0
        if self.told is None:  # versions are of one size, so that every client's message is as long
            return len(places) * len(self.of(places[:1]).to_bytes())
        return sum(len(self.of(place).to_bytes()) for place in torch.split(places, 1))

    def to_bytes(self) -> bytes:
        about = {"table_of": self.table_of, "own_of": self.own_of, "alike": self.alike, "rows": self.rows}
        said = {name: tensor for name, tensor in about.items() if tensor is not None}
        return encode("download", joined({"tables": self.tables, "side": self.side, "own": self.own}) | said)

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Download:
        tensors = decode(data, schema)
        tables, side, own = (part_of(tensors, part) for part in ("tables", "side", "own"))
        own_of, alike, rows = (tensors.get(name) for name in ("own_of", "alike", "rows"))
        return cls(tables, tensors["table_of"], side, own, own_of, alike, rows=rows)


@dataclass(frozen=True)
class Push:
    """Tables that the server gives to some clients, who keep them: client u gets version `table_of[u]`, −1 none."""

    tables: Mapping[str, Tensor]
    table_of: Tensor

    @property
    def versions(self) -> int:
        return max((len(tables) for tables in self.tables.values()), default=0)

    def of(self, places: Tensor) -> Push:
        return Push(*_versions_of(self.tables, self.table_of[places]))

    @property
    def nbytes(self) -> int:
        """Of the messages of all who get a table."""
        receivers = torch.nonzero(self.table_of >= 0)[:, 0]
        return len(receivers) * len(self.of(receivers[:1]).to_bytes())

    def to_bytes(self) -> bytes:
        return encode("push", joined({"tables": self.tables}) | {"table_of": self.table_of})

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Push:
        tensors = decode(data, schema)
        return cls(part_of(tensors, "tables"), tensors["table_of"])


@dataclass(frozen=True)
class Upload:
    """What some clients send: the declared names and nothing else, client axis first."""

    clients: Tensor
    """Their ids."""
    tensors: Mapping[str, Sent]
    rows: Tensor | None = None
    """Which rows of the tables were sent, by a client that knows some only; not said: all."""
    began: Mapping[str, Tensor] = field(default_factory=dict)
    """Of personal parameters, what each client received. The server has it; it does not travel."""

    def __len__(self) -> int:
        return len(self.clients)

    def of(self, chosen: Tensor) -> Upload:
        """The part of some clients: those marked in `chosen`, or at these places."""
        parts = {n: t[chosen] if isinstance(t, Tensor) else t.of(chosen) for n, t in self.tensors.items()}
        return Upload(self.clients[chosen], parts, self.rows, {n: t[chosen] for n, t in self.began.items()})

    def only(self, names: Collection[str]) -> Upload:
        """The part that has these names."""
        return Upload(self.clients, {name: self.tensors[name] for name in names}, self.rows, self.began)

    def tensor(self, name: str) -> Tensor:
        """Of what is one number, or a few, for every client."""
        found = self.tensors[name]
        assert isinstance(found, Tensor)
        return found

    @property
    def bytes_per_client(self) -> int:
        """All messages are as long: they hold the same tensors. Nothing is sent where there is nothing to tell."""
        return len(self.of(torch.arange(len(self)) == 0).to_bytes()) if self.tensors else 0

    def to_bytes(self) -> bytes:
        whole = {name: dense(sent) for name, sent in self.tensors.items()}
        about = {"clients": self.clients} | ({} if self.rows is None else {"rows": self.rows})
        return encode("upload", joined({"sent": whole}) | about)

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Upload:
        tensors = decode(data, schema)
        return cls(tensors["clients"], part_of(tensors, "sent"), tensors.get("rows"))


def addressed(clients: Tensor, everybody: int) -> Tensor:
    """(everybody,): where the clients at these places stand among them; −1 of all others."""
    return torch.full((everybody,), -1).index_copy_(0, clients, torch.arange(len(clients)))


def _versions_of(tables: Mapping[str, Tensor], table_of: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The versions that are named, in their order, and who gets which of these; −1 stays."""
    used = torch.unique(table_of[table_of >= 0])
    narrowed = torch.where(table_of >= 0, torch.searchsorted(used, table_of), -1)
    chosen = {n: of if len(of) == len(used) else of.index_select(0, used) for n, of in tables.items()}
    return chosen, narrowed


def _still_alike(alike: Tensor | None, places: Tensor) -> Tensor | None:
    """Whoever is alone in a group is like nobody."""
    if alike is None:
        return None
    numbers, members = torch.unique(alike[places], return_counts=True)
    shared = numbers[(members > 1) & (numbers >= 0)]
    found = torch.where(torch.isin(alike[places], shared), alike[places], -1)
    return found if len(shared) else None
