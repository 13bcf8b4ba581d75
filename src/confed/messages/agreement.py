"""What server and clients settle before the first round: the names, shapes and types of all that will travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from confed.messages.devices import Download
from confed.messages.sums import BY_ROW, Over
from confed.messages.wire import Field, Schema

Shape = tuple[int, ...]
Needs = Literal["sum", "individual"]

MOST_ROWS = 1 << 24
"""A client has fewer rows than this."""

FACTS = {
    "loss": Field(torch.float64, ("clients",)),
    "samples": Field(torch.int64, ("clients",), least=0, below=MOST_ROWS),
    "held": Field(torch.bool, ("clients", "items")),
    "tokens": Field(torch.int64, ("clients", "tokens"), least=-1),
}
"""What clients may send beside parameters: their loss, their number of rows, which items' rows they trained, and tokens
of their items that only clients can read."""


@dataclass(frozen=True)
class Agreement:
    """Between clients and a server."""

    items: int
    """Rows of the tables; between companies, the people whom several of them know."""
    dtype: torch.dtype
    received: Mapping[str, Shape]
    """Shared parameters that come with every download."""
    kept: Mapping[str, Shape]
    """Shared parameters that clients keep, and that are pushed to some of them."""
    uploads: frozenset[str]
    plan: Mapping[str, Over] = field(default_factory=dict)
    """What is averaged, and over whom."""
    needs: Needs = "sum"
    """Whether the server gets sums alone, or may ask about single clients."""
    side: Mapping[str, Field] = field(default_factory=dict)
    own: Mapping[str, Shape] = field(default_factory=dict)
    """What the server has for single clients; some of it they may change and send."""
    several: frozenset[str] = frozenset()
    """Tables of which clients receive different versions: what becomes of them is counted from nothing."""
    tokens: int = 0
    """Of how many of its items a client sends tokens."""
    by_rows: bool = False
    """Whether clients hear and tell of some rows of the tables only, and which these are is no secret."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """Of everything that is shared."""
        return {**self.received, **self.kept, **self.own}

    def bases(self, download: Download) -> dict[str, Tensor]:
        """By planned name, whole, what clients' changes are counted from: the version that they all received, or
        nothing at all.
        """
        return {name: self._base(download, name) for name in self.plan}

    def _base(self, download: Download, name: str) -> Tensor:
        if name not in download.tables or name in self.several:
            return torch.zeros(self.shapes[name], dtype=self.dtype)
        versions = download.tables[name]
        if len(versions) != 1:
            raise ValueError(f"clients received several versions of {name!r}, whose changes do not add up")
        version = versions[0]
        if download.rows is None:
            return version
        return torch.zeros(self.shapes[name], dtype=self.dtype).index_copy_(0, download.rows, version)

    def download(self, clients: int) -> Schema:
        fields = {
            "table_of": Field(torch.int64, ("clients",), least=-1, below="versions"),
            "alike": Field(torch.int64, ("clients",), least=-1, optional=True),
            **self._versions(self.received),
            **{f"side/{name}": of for name, of in self.side.items()},
            **({"rows": self._rows(optional=True)} if self.by_rows else {}),
            **{f"own/{name}": Field(self.dtype, ("owners", *shape)) for name, shape in self.own.items()},
        }
        if self.own:
            fields["own_of"] = Field(torch.int64, ("clients",), least=-1, below="owners")
        sizes = self._sizes(clients) | ({} if self.received else {"versions": 1})
        return Schema("download", fields, sizes)

    def push(self, clients: int) -> Schema:
        table_of = Field(torch.int64, ("clients",), least=-1, below="versions")
        return Schema("push", {"table_of": table_of, **self._versions(self.kept)}, self._sizes(clients))

    def upload(self, clients: int) -> Schema:
        sent = {
            name: FACTS[name] if name in FACTS else Field(self.dtype, ("clients", *self._travels(self.shapes[name])))
            for name in self.uploads
        }
        who = {"clients": Field(torch.int64, ("clients",), distinct=True)}
        which = {"rows": self._rows()} if self.by_rows else {}
        return Schema("upload", who | which | {f"sent/{name}": of for name, of in sent.items()}, self._sizes(clients))

    def sums(self) -> Schema:
        fields = {name: Field(torch.int64, (), least=0) for name in ("participants", "nbytes")}
        if "loss" in self.uploads:
            fields["loss"] = Field(torch.float64, ())
        for name, over in self.plan.items():
            fields |= {f"{part}/{name}": of for part, of in self.partial(name, over).items()}
        return Schema("sums", fields)

    def partial(self, name: str, over: Over) -> dict[str, Field]:
        """Of one tensor, the fields of what some clients changed in it."""
        shape = self.shapes[name]
        weight = Field(torch.float64, shape[:1] if over in BY_ROW else (), least=0)
        rest = Field(torch.float64, shape, optional=True)
        return {"changes": Field(torch.float64, shape), "weight": weight, "rest": rest}

    def each(self, names: Sequence[str], items: Tensor | None) -> dict[str, Field]:
        """What single clients sent, or the rows `items` of it."""
        return {name: FACTS[name] if name in FACTS else self._of_each(name, items) for name in names}

    def _of_each(self, name: str, items: Tensor | None) -> Field:
        shape = self.shapes[name]
        return Field(self.dtype, ("clients", *(shape if items is None else (len(items), *shape[1:]))))

    def _versions(self, shapes: Mapping[str, Shape]) -> dict[str, Field]:
        """Of companies, nothing is sent before anything is known."""
        return {
            f"tables/{name}": Field(self.dtype, ("versions", *self._travels(shape)), optional=self.by_rows)
            for name, shape in shapes.items()
        }

    def _travels(self, shape: Shape) -> tuple[int | str, ...]:
        return ("rows", *shape[1:]) if self.by_rows else shape

    def _rows(self, *, optional: bool = False) -> Field:
        return Field(torch.int64, ("rows",), least=0, below=self.items, distinct=True, optional=optional)

    def _sizes(self, clients: int) -> dict[str, int]:
        return {"clients": clients, "items": self.items, "tokens": self.tokens}
