"""What an examination beside the clients tells: of every held-out item two whole numbers, and no score."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from confed.messages.wire import Field, Schema, decode, encode
from confed.tensors import joined, part_of

_TYPE = torch.int32
"""Nobody has two thousand million candidates."""


@dataclass(frozen=True)
class Tally:
    """Where held-out items stood, by ranking and part (`full_test`, say): candidates above each, and equal to it."""

    cases: Mapping[str, Tensor]
    """By part: whose items they are, by id; or the interaction's own, where users have several."""
    above: Mapping[str, Tensor]
    """−1: never ranked."""
    equal: Mapping[str, Tensor]

    def of(self, cases: Tensor) -> Tally:
        """What is known of those of `cases` that are here."""
        return self._chosen({part: torch.isin(own, cases) for part, own in self.cases.items()})

    def __add__(self, other: Tally) -> Tally:
        """Of cases that were examined apart, under the same rankings, in ascending order."""
        if self.above.keys() != other.above.keys():
            raise ValueError(f"tallies of {sorted(self.above)} and of {sorted(other.above)} cannot be put together")
        both = Tally(*(_beside(getattr(self, name), getattr(other, name)) for name in ("cases", "above", "equal")))
        return both._chosen({part: torch.argsort(own) for part, own in both.cases.items()})

    def _chosen(self, chosen: Mapping[str, Tensor]) -> Tally:
        """`chosen` are marks or an order, by part."""
        cases = {part: own[chosen[part]] for part, own in self.cases.items()}
        above, equal = (
            {name: values[chosen[part]] for part in cases for name, values in ranks.items() if name.endswith(part)}
            for ranks in (self.above, self.equal)
        )
        return Tally(cases, above, equal)

    def to_bytes(self) -> bytes:
        ranks = {"above": self.above, "equal": self.equal}
        narrow = {way: {name: values.to(_TYPE) for name, values in of.items()} for way, of in ranks.items()}
        return encode("tally", joined({"cases": self.cases, **narrow}))

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Tally:
        tensors = decode(data, schema)
        above, equal = (part_of(tensors, way) for way in ("above", "equal"))
        return cls(
            part_of(tensors, "cases"), *({name: v.long() for name, v in ranks.items()} for ranks in (above, equal))
        )


def tally_schema(rankings: Collection[str], parts: Collection[str]) -> Schema:
    fields = {f"cases/{part}": Field(torch.int64, (part,), distinct=True) for part in parts}
    for part in parts:
        for ranking in rankings:
            fields[f"above/{ranking}{part}"] = Field(_TYPE, (part,), least=-1)
            fields[f"equal/{ranking}{part}"] = Field(_TYPE, (part,), least=0)
    return Schema("tally", fields)


def _beside(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.cat([values, other[name]]) for name, values in one.items()}
