"""What a client holds, and how it scores an item."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.initial import Initialiser, initial
from confed.random import Stream

Ints = NDArray[np.int64]

Role = Literal["item", "user", "head", "net"]
Scope = Literal["private", "shared"]
Lifetime = Literal["round", "persistent", "until next"]


@dataclass(frozen=True)
class Renewal:
    """A parameter that each client draws anew, for itself, every so many rounds: uniformly within ±bound."""

    every: int
    bound: float

    def due(self, number: int) -> bool:
        return (number - 1) % self.every == 0


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of one client: who sees it, how long it lives, and along which axis it lies.

    `scope` decides whether it is uploaded. Role `item` means one row per item; of what is `personal` the server has one
    for each client, whom it shares it with and nobody else.

    A shared parameter lives for a `round`, after which the server's version replaces it, or is `persistent`: the
    client keeps its own until the server pushes another. A private one is kept for good, or `until next`, until another
    round begins; or it has a `renewal`: if that is due every round, nothing is kept of it.
    """

    name: str
    shape: tuple[int, ...]
    role: Role
    scope: Scope
    init: Initialiser
    lifetime: Lifetime = "round"
    renewal: Renewal | None = None
    personal: bool = False
    one_start: bool = False
    """Whether what is personal begins with the same value for all, like everything else."""

    @property
    def kept(self) -> bool:
        """Whether the client remembers it between rounds."""
        if self.renewal and self.renewal.every == 1:
            return False
        return self.scope == "private" or self.lifetime == "persistent"

    def initial(self, seed: int, dtype: torch.dtype) -> Tensor:
        """The common start: every client begins with the same value, as in the PFedRec line of work."""
        return initial(seed, self.name, self.shape, self.init).to(dtype)

    def initial_of_each(self, clients: int, seed: int, dtype: torch.dtype) -> Tensor:
        """(clients, …): of what is personal, a start for each."""
        drawn = initial(seed, self.name, (clients, *self.shape), self.init).to(dtype)
        return drawn[:1].expand_as(drawn).clone() if self.one_start else drawn

    def renewed(self, ids: Ints, seed: int, number: int, dtype: torch.dtype) -> Tensor:
        """(clients, …): what clients draw for round `number`, each by its id."""
        assert self.renewal is not None, f"{self.name} is kept for good"
        slots = np.arange(math.prod(self.shape))
        drawn = Stream.of(seed, f"renewed/{self.name}", number).uniform(ids[:, None], slots[None, :])
        return torch.from_numpy(self.renewal.bound * (2.0 * drawn - 1.0)).view(len(ids), *self.shape).to(dtype)


@dataclass(frozen=True)
class Bilinear:
    """The names of the parts of the score s_i = vector · Σ_k table_k[i] + offset_i + Σ biases."""

    vector: str
    tables: tuple[str, ...]
    biases: tuple[str, ...] = ()
    offset: str | None = None
    """An item table of one column, where there is one of vectors."""


class Backbone(ABC):
    """Parameters and a score. `params` and `rows` have the client axis first, of size 1 where all clients share."""

    params: tuple[ParamSpec, ...]
    bilinear: Bilinear | None = None
    """Set where the score has this form, for which there is a faster way to train."""
    hidden: int = 1
    """Largest number of intermediate values per scored pair; bounds how many pairs are scored at once."""
    reshapes: bool = False
    """Whether `look` does anything."""
    reads: tuple[str, ...] = ()
    """What the score takes beside parameters, of that which the server has for single clients."""
    history: int = 0
    """Of how many of its items a client sends tokens, where it does."""
    views: tuple[str, str] | None = None
    """Where the score is that of a sum of two tables as looked at: the shared one and the client's own."""

    def look(self, params: Mapping[str, Tensor], tables: Mapping[str, Tensor], liked: Tensor) -> dict[str, Tensor]:
        """The item tables as the client scores with them, given those it holds; `liked` (clients, n) marks the rows
        of its training positives. Differentiable. By default tables are scored with as they are.
        """
        return dict(tables)

    @abstractmethod
    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        """(clients, n) logits, from the non-item parameters and n rows (clients, n, d) of every table as looked at."""

    def scored_alone(self, params: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        """(clients, n) logits by rows of one of the `views` without the other."""
        raise TypeError(f"{type(self).__name__} scores with one table")

    def named(
        self,
        *,
        role: Role | None = None,
        scope: Scope | None = None,
        kept: bool | None = None,
        personal: bool | None = None,
    ) -> tuple[ParamSpec, ...]:
        asked = {"role": role, "scope": scope, "kept": kept, "personal": personal}
        said = {fact: value for fact, value in asked.items() if value is not None}
        return tuple(p for p in self.params if all(getattr(p, fact) == value for fact, value in said.items()))

    @property
    def own_names(self) -> list[str]:
        """What the server has for the client alone, of all that the score takes."""
        return [*(spec.name for spec in self.named(personal=True)), *self.reads]

    def shared_vectors(self) -> tuple[str, ...]:
        """The names of the shared item tables whose rows are vectors: offsets have no direction."""
        offset = self.bilinear.offset if self.bilinear else None
        return tuple(spec.name for spec in self.named(role="item", scope="shared") if spec.name != offset)

    def keeping_items(self) -> Self:
        """The same backbone, whose clients keep their copies of the shared item tables between rounds."""
        twin = copy.copy(self)
        twin.params = tuple(replace(p, lifetime="persistent") if p.role == "item" else p for p in self.params)
        return twin


def inner(rows: Tensor, vector: Tensor) -> Tensor:
    """(clients, n): each client's `vector` (clients, d) times its `rows` (clients, n, d).

    Where either side is shared by all clients, one matrix product replaces one per client.
    """
    if rows.shape[0] == 1:
        return vector @ rows[0].T
    if vector.shape[0] == 1:
        return rows @ vector[0]
    return torch.bmm(rows, vector[:, :, None])[:, :, 0]
