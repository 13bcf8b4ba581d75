"""What server and clients settle before the first round: the names, shapes and types of all that will travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from confed.messages.sums import Over
from confed.messages.wire import Field, Schema

Shape = tuple[int, ...]

MOST_ROWS = 1 << 24
"""A client has fewer rows than this."""

FACTS = {
    "loss": Field(torch.float64, ("clients",)),
    "samples": Field(torch.int64, ("clients",), least=0, below=MOST_ROWS),
    "held": Field(torch.bool, ("clients", "items")),
}
"""What clients may send beside parameters: their loss, their number of rows, which items' rows they trained."""


@dataclass(frozen=True)
class Agreement:
    """Between people's devices and a server."""

    items: int
    dtype: torch.dtype
    received: Mapping[str, Shape]
    """Shared parameters that come with every download."""
    kept: Mapping[str, Shape]
    """Shared parameters that clients keep, and that are pushed to some of them."""
    uploads: frozenset[str]
    side: Mapping[str, Field] = field(default_factory=dict)

    def download(self, clients: int) -> Schema:
        fields = {
            "table_of": Field(torch.int64, ("clients",), least=0, below="versions"),
            "alike": Field(torch.int64, ("clients",), least=-1, optional=True),
            **self._versions(self.received),
            **{f"side/{name}": of for name, of in self.side.items()},
        }
        sizes = self._sizes(clients) | ({} if self.received else {"versions": 1})
        return Schema("download", fields, sizes)

    def push(self, clients: int) -> Schema:
        table_of = Field(torch.int64, ("clients",), least=-1, below="versions")
        return Schema("push", {"table_of": table_of, **self._versions(self.kept)}, self._sizes(clients))

    def upload(self, clients: int) -> Schema:
        parameters = {**self.received, **self.kept}
        sent = {
            name: FACTS[name] if name in FACTS else Field(self.dtype, ("clients", *parameters[name]))
            for name in self.uploads
        }
        who = {"clients": Field(torch.int64, ("clients",), distinct=True)}
        return Schema("upload", who | {f"sent/{name}": of for name, of in sent.items()}, self._sizes(clients))

    def sums(self, plan: Mapping[str, Over]) -> Schema:
        fields = {name: Field(torch.int64, (), least=0) for name in ("participants", "nbytes")}
        fields["loss"] = Field(torch.float64, ())
        parameters = {**self.received, **self.kept}
        for name, over in plan.items():
            shape = parameters[name]
            fields[f"changes/{name}"] = Field(torch.float64, shape)
            fields[f"weight/{name}"] = Field(torch.float64, shape[:1] if over == "holders" else (), least=0)
        return Schema("sums", fields)

    def _versions(self, shapes: Mapping[str, Shape]) -> dict[str, Field]:
        return {f"tables/{name}": Field(self.dtype, ("versions", *shape)) for name, shape in shapes.items()}

    def _sizes(self, clients: int) -> dict[str, int]:
        return {"clients": clients, "items": self.items}
