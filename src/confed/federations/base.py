"""A federation says where gateways are: in this process, in others, on other machines.

It puts a question to the sites that hold the clients, each about its own, and puts the answers together: one question
is one exchange. How a question gets there is all that its kinds differ in. What the server pushes to clients waits
here, and goes with the next question.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confed.federations.site import Trained, both_tallies
from confed.messages import Download, PartialSum, Push, Tally
from confed.seals import Sealed
from confed.server.uploads import Named
from confed.stateful import Stateful


class Federation(Stateful):
    """`held` are the places among all of the clients at each site, and `ids` the ids of all."""

    def __init__(self, held: Sequence[Tensor], ids: Tensor) -> None:
        self.held = held
        self.ids = ids
        self.exchanges = 0
        """Questions asked so far."""
        self._push: Push | None = None

    @abstractmethod
    def _ask(self, question: str, about: Mapping[int, Mapping[str, Any]]) -> Iterator[Any]:
        """Put the question to the sites whose numbers are given, with what it is about; then the answers of one site
        after another, in that order. `Site` says which questions there are.
        """

    def train(self, number: int, download: Download, clients: Tensor, *, examine: bool, opens: bool = True) -> Trained:
        """Train the clients at the places `clients`, and examine them with what they have then. `opens`: this is the
        first turn of the round.
        """
        about = [
            {
                "number": number,
                "download": download.of(held),
                "clients": _within(held, clients),
                "examine": examine,
                "opens": opens,
            }
            for held in self.held
        ]
        answers: Iterator[Trained] = self._exchange("train", self._with_push(about))
        return reduce(add, answers)

    def examine(self, download: Download, clients: Tensor) -> dict[str, Tally]:
        """Where the held-out items of the clients at the places `clients` stand with what the server shares, by
        domain.
        """
        told = [{"download": download.of(held), "clients": _within(held, clients)} for held in self.held]
        about = self._with_push(told)
        return reduce(both_tallies, self._exchange("examine", about))

    def push(self, push: Push | None) -> None:
        """Give tables to clients who keep them, together with the next question."""
        self._push = push

    def each(self, names: Sequence[str], where: Tensor, items: Tensor | None) -> Iterator[tuple[Tensor, Named]]:
        """See `server.uploads.OpenUploads`. The site that holds the first of `where` is heard first."""
        of_sites = [where[torch.isin(where, self.ids[held])] for held in self.held]
        asked = [site for site, clients in enumerate(of_sites) if len(clients)]
        asked.sort(key=lambda site: int(of_sites[site][0] != where[0]))
        return self._ask_once("each", {s: {"names": names, "where": of_sites[s], "items": items} for s in asked})

    def partials(self, names: Sequence[str], groups: Sequence[Tensor]) -> list[dict[str, PartialSum]]:
        about = [{"names": names, "groups": groups}] * len(self.held)
        return reduce(_added, self._exchange("partials", about))

    def cost(self) -> dict[str, float]:
        """What the exchanges since the last call took, where sites are elsewhere."""
        return {}

    @abstractmethod
    def serving_state(self) -> dict[str, Tensor]:
        """The clients' part of what serving the last round takes, in copies."""

    @abstractmethod
    def commit(self, where: Path) -> tuple[Sealed, ...]:
        """Sites elsewhere write what they hold into the folder `where`, a file each."""

    @abstractmethod
    def restore(self, where: Path, sites: Sequence[Sealed] | None) -> None:
        """Sites elsewhere return to what they wrote there; None: to where the run began."""

    def repair(self) -> None:
        """Wait until every site is there again."""
        raise NotImplementedError("sites in this process cannot be lost")

    def _exchange(self, question: str, about: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
        """Ask everybody."""
        return self._ask_once(question, dict(enumerate(about)))

    def _ask_once(self, question: str, about: Mapping[int, Mapping[str, Any]]) -> Iterator[Any]:
        self.exchanges += 1
        return self._ask(question, about)

    def _with_push(self, about: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        push, self._push = self._push, None
        return [
            {**told, "push": None if push is None else push.of(held)}
            for told, held in zip(about, self.held, strict=True)
        ]


def _within(held: Tensor, clients: Tensor) -> Tensor:
    """Those of `clients` who are held, by their places there."""
    return torch.nonzero(torch.isin(held, clients))[:, 0]


def _added(one: list[dict[str, PartialSum]], other: list[dict[str, PartialSum]]) -> list[dict[str, PartialSum]]:
    return [{name: part + theirs[name] for name, part in ours.items()} for ours, theirs in zip(one, other, strict=True)]
