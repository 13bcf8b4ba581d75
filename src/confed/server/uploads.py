"""Uploads as the server sees them: answers to questions, not a pile it owns.

`Uploads` has the planned sums and can answer nothing about a single client: what it knows is what secure aggregation
would tell. `OpenUploads` can ask the gateways further, for strategies that look at individuals: means over a group,
rows of single clients. Which sums are wanted is known before the round: the strategy's plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from confed.errors import MessageError
from confed.messages import Over, PartialSum, Sums


class Uploads:
    """What clients made of what was sent out, which is `bases`, by name, summed up as planned."""

    def __init__(self, sums: Sums, plan: Mapping[str, Over], bases: Mapping[str, Tensor]) -> None:
        self.sums = sums
        self.plan = plan
        self.bases = bases

    def mean(self, name: str) -> Tensor:
        """What the tensor `name` becomes by what all made of it."""
        return self.sums.of[name].applied(self.bases[name], self.plan[name])

    def changes(self, name: str) -> Tensor:
        """In float64, what all added to the tensor `name`."""
        return self.sums.of[name].total


Named = Mapping[str, Tensor]
"""By name, client axis first."""


class Asked(Protocol):
    """Whoever holds the uploads of the round, and answers about them. Clients are named by their ids."""

    def each(self, names: Sequence[str], where: Tensor, items: Tensor | None) -> Iterator[tuple[Tensor, Named]]: ...

    def partials(self, names: Sequence[str], groups: Sequence[Tensor]) -> list[dict[str, PartialSum]]: ...


class OpenUploads(Uploads):
    """Uploads that lie where their clients are, and of which single ones can be asked."""

    def __init__(
        self, sums: Sums, plan: Mapping[str, Over], bases: Mapping[str, Tensor], clients: Tensor, asked: Asked
    ) -> None:
        super().__init__(sums, plan, bases)
        self.clients = clients
        """The participants' ids."""
        self._asked = asked

    def means(self, names: Sequence[str], groups: Sequence[Tensor]) -> list[dict[str, Tensor]]:
        """What the tensors become by what each group of clients made of them; one exchange for all groups."""
        found = self._asked.partials(names, groups) if groups else []
        return [{name: part.applied(self.bases[name], self.plan[name]) for name, part in of.items()} for of in found]

    def each(self, names: Sequence[str], where: Tensor, items: Tensor | None = None) -> Iterator[tuple[Tensor, Named]]:
        """What single clients sent, those in `where`, or the rows `items` of it where that are tables: their ids and,
        by name, (clients, …). Some after others, in any order, but for the first of `where`, who comes first. One
        exchange.
        """
        missing = where
        for clients, sent in self._asked.each(names, where, items):
            left = missing[~torch.isin(missing, clients)]
            if len(missing) - len(left) != len(clients):
                raise MessageError("an answer about somebody who was not asked, or twice")
            missing = left
            yield clients, sent
        if len(missing):
            raise MessageError(f"{len(where)} clients are asked about, {len(missing)} sent nothing")


def with_sent(vectors: Tensor, name: str, uploads: OpenUploads, ids: Tensor) -> Tensor:
    """`vectors` (clients, …) of clients with these `ids`, in their place what participants sent under `name`."""
    found = vectors.clone()
    for clients, sent in uploads.each([name], uploads.clients):
        found[places_among(ids, clients)] = sent[name]
    return found


def places_among(ids: Tensor, clients: Tensor) -> Tensor:
    """Where those with the ids `clients` stand among `ids`."""
    order = torch.argsort(ids)
    return order[torch.searchsorted(ids, clients, sorter=order)]
