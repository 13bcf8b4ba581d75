"""A silo: a company with many users in one domain, who may be known to other companies too.

It trains on its own interactions and exchanges rows about shared users; beside these it says its loss. `train` takes
what the server sent, `share` has what may be sent back (the gateway leaves out whom the company knows nothing of). Its
optimiser lives as long as the company does (D-43).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from confed.data.split import TrainingData
from confed.scoring import Scorer
from confed.stateful import Served

Rows = Mapping[str, Tensor]
"""Named rows, one for each of the shared users of a domain, in the order of `Shared.users`."""


@dataclass(frozen=True)
class Shared:
    """The users of a domain whom other domains know too."""

    users: Tensor
    """Their numbers in the domain, ascending."""
    people: Tensor
    """Their numbers among all shared people, as the server knows them."""
    known: Tensor
    """Whether the domain has anything to tell about them: a user it has no interactions of is only heard about."""
    everybody: int
    """How many shared people there are, of all domains."""
    seed: int
    """A number that all companies agreed on, so that they can begin alike."""

    @classmethod
    def of(cls, users: Tensor, people: Tensor, data: TrainingData, *, everybody: int, seed: int) -> Shared:
        lengths = torch.from_numpy(data.positives.lengths)
        return cls(users, people, lengths.index_select(0, users) > 0, everybody, seed)


class Silo(Served):
    """One company in training."""

    hidden: int = 1
    """Largest number of intermediate values per scored pair."""

    def __init__(self, data: TrainingData, shared: Shared) -> None:
        self.data = data
        self.shared = shared

    @abstractmethod
    def train(self, number: int, received: Rows | None) -> float:
        """Local training of round `number`; `received` is what the server knows of the shared users, if anything."""

    @abstractmethod
    def share(self) -> Rows:
        """What the company would tell about its shared users, as it stands."""

    @abstractmethod
    def scorer(self, received: Rows | None = None) -> Scorer:
        """How users are scored: by the company's own idea of them, or of shared users by what was `received`."""

    def users_as_rows(self) -> Rows | None:
        """What the company thinks of all its users, where it knows them as distributions: mean and deviation."""
        return None


def replaced(table: Tensor, users: Tensor, rows: Tensor | None) -> Tensor:
    """`table` with the rows of `users` exchanged for `rows`, if there are any."""
    return table if rows is None else torch.index_copy(table, 0, users, rows.to(table.dtype))
