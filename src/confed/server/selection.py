"""Who takes part in a round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.random import Stream

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """A fraction of the clients, drawn anew every round; 1 is everyone."""

    fraction: float = 1.0

    def participants(self, ids: Ints, seed: int, round_: int, group_of: Ints | None = None) -> Ints:
        """The places among `ids` of those who take part, ascending; at least one. `group_of` says which group of the
        server's each is in, where it has some.
        """
        if self.fraction >= 1.0:
            return np.arange(len(ids))
        count = max(1, math.ceil(self.fraction * len(ids)))
        return np.sort(np.argsort(Stream.of(seed, "selection", round_).bits(ids), kind="stable")[:count])


@dataclass(frozen=True)
class FromEveryGroup(Selection):
    """As many from each of the server's groups (FedFast's ActvSAMP), more from others where one has too few; together a
    fraction of the clients, and at least `fewest`.
    """

    fewest: int = 1

    def participants(self, ids: Ints, seed: int, round_: int, group_of: Ints | None = None) -> Ints:
        if group_of is None:
            raise ValueError("clients are chosen by groups, and there are none")
        count = min(max(math.ceil(self.fraction * len(ids)), self.fewest), len(ids))
        order = np.argsort(Stream.of(seed, "selection", round_).bits(ids), kind="stable")
        turn = np.empty(len(ids), dtype=np.int64)
        for group in np.unique(group_of):
            members = order[group_of[order] == group]
            turn[members] = np.arange(len(members))
        return np.sort(order[np.argsort(turn[order], kind="stable")[:count]])


@dataclass(frozen=True)
class HalfByGroup(Selection):
    """A fraction of the clients, at most `most`: half of them drawn evenly, half with a probability that grows with the
    size of their group (PerFedRec). Whoever is drawn twice makes room for somebody else.
    """

    most: int = 128

    def participants(self, ids: Ints, seed: int, round_: int, group_of: Ints | None = None) -> Ints:
        if group_of is None:
            raise ValueError("clients are chosen by groups, and there are none")
        count = min(max(math.ceil(self.fraction * len(ids)), 1), self.most, len(ids))
        stream = Stream.of(seed, "selection", round_)
        evenly = np.argsort(stream.bits(ids), kind="stable")
        by_id = np.argsort(ids, kind="stable")
        upto = np.cumsum(np.bincount(group_of)[group_of][by_id])
        draws = stream.child("by group").uniform(0, np.arange(count - count // 2)) * upto[-1]
        drawn = by_id[np.searchsorted(upto, draws, side="right")]
        first = np.union1d(evenly[: count // 2], drawn)
        others = evenly[~np.isin(evenly, first)]
        return np.sort(np.concatenate([first, others[: count - len(first)]]))


def chosen(selection: Selection, ids: Tensor, seed: int, number: int, group_of: Tensor | None) -> Tensor:
    """The places of those who take part in round `number`."""
    groups = None if group_of is None else group_of.numpy()
    return torch.from_numpy(selection.participants(ids.numpy(), seed, number, groups))
