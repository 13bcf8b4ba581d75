"""What travels between a company and the server, either way: rows about people that several companies know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from confed.errors import MessageError
from confed.messages.wire import Field, Schema, decode, encode
from confed.tensors import joined, part_of


@dataclass(frozen=True)
class PeopleRows:
    """Named rows, one for each of some people; a company says its loss as well, unless it hides what it sends."""

    people: Tensor
    """Their numbers among the people that several companies know; the companies agreed on the numbers beforehand."""
    tensors: Mapping[str, Tensor]
    loss: Tensor | None = None

    def of(self, people: Tensor) -> PeopleRows:
        """The rows of those of `people` who are here."""
        chosen = torch.isin(self.people, people)
        return PeopleRows(self.people[chosen], {name: rows[chosen] for name, rows in self.tensors.items()}, self.loss)

    def about(self, people: Tensor) -> Mapping[str, Tensor]:
        """The rows, which must be about exactly these people, in this order."""
        if not torch.equal(self.people, people):
            raise MessageError(f"rows about {len(people)} people are expected, these are about others")
        return self.tensors

    @property
    def nbytes(self) -> int:
        return len(self.to_bytes())

    def to_bytes(self) -> bytes:
        about = {"people": self.people} | ({} if self.loss is None else {"loss": self.loss})
        return encode("people", joined({"rows": self.tensors}) | about)

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> PeopleRows:
        tensors = decode(data, schema)
        return cls(tensors["people"], part_of(tensors, "rows"), tensors.get("loss"))


def people_schema(widths: Mapping[str, int], dtype: torch.dtype, everybody: int, *, loss: bool) -> Schema:
    """Rows of these widths about some of `everybody`; with the loss on the way up."""
    fields = {
        "people": Field(torch.int64, ("people",), least=0, below=everybody, distinct=True),
        **{f"rows/{name}": Field(dtype, ("people", width)) for name, width in widths.items()},
        **({"loss": Field(torch.float64, ())} if loss else {}),
    }
    return Schema("people", fields)
