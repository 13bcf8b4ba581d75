"""What people have on their devices, looked at through `Run.replay`: all of them, some after others."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from confed.analysis.run import Run
from confed.clients.replay import Replay
from confed.threads import in_parallel

_VALUES = 1 << 22
"""Of the item tables of the clients that are looked at together."""


def replays(run: Run, *, everybody: bool = False) -> Iterator[Replay]:
    """Of all clients in the order of their numbers; nothing where people are no clients."""
    users = run.summary["users"]
    first = run.replay([0])
    if first is None:
        return iter(())
    size = max(_VALUES // sum(math.prod(spec.shape) for spec in first.backbone.named(role="item")), 1)
    parts = torch.split(torch.arange(users), size)
    found = in_parallel(lambda part: run.replay(part.tolist(), everybody=everybody), parts)
    return (replay for replay in found if replay is not None)


def client_tables(run: Run) -> Tensor | None:
    """(clients, items, d): every client's item table in the chosen round, as it was scored under the run's view.

    Under `local` as the client trained it, else as the server's step left it. None where no table is shared.
    """
    return _together(replay.shared_tables() for replay in replays(run))


def two_scores(run: Run) -> Iterator[tuple[Tensor, Tensor]] | None:
    """(users, items) twice, in the chosen round, some users after others: scores by what everybody shares, and by what
    is the client's own, as far as they took part. None where a method has one view of an item only.
    """
    first = run.replay([0])
    if first is None or not (first.backbone.views or run.is_rebuilt):
        return None
    return (replay.two_scores() for replay in replays(run))


def has_two_tables(run: Run) -> bool:
    """Whether clients score with the sum of a shared item table and their own."""
    first = run.replay([0])
    return first is not None and first.backbone.views is not None


def drift(run: Run) -> Tensor | None:
    """(users,): how far a round of local training takes each client's shared tables from the consensus."""
    return _together(replay.drift() for replay in replays(run, everybody=True))


def _together(parts: Iterator[Tensor | None]) -> Tensor | None:
    found = [part for part in parts if part is not None]
    return torch.cat(found) if found else None
