"""What a run drives, wherever the mathematics happens: rounds, and a state that can be saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from confed.messages import Tally
from confed.protocol import View
from confed.seals import Sealed
from confed.stateful import Stateful

Tallies = Mapping[str, Tally]
"""What an examination found, by domain; where there is one only, it is called `ONLY`."""


@dataclass(frozen=True)
class Round:
    """What happened in a round."""

    loss: float | None
    participants: int
    upload_bytes: int = 0
    download_bytes: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the strategy noted, and what a simulation may see beside the messages; plain JSON."""
    tallies: Mapping[View, Tallies] = field(default_factory=dict)
    """By view, where held-out items stood."""
    place: Mapping[str, float] = field(default_factory=dict)
    """Where clients are elsewhere: bytes between server and sites, and seconds that the server waited for them."""


class Trainer(Stateful):
    """One model in training."""

    view: View
    """The view the method is judged by."""
    views: tuple[View, ...]
    """All views it can be examined under."""

    @abstractmethod
    def round(self, number: int, views: Collection[View] = ()) -> Round:
        """Train round `number` (from 1), and examine it under `views`."""

    @abstractmethod
    def serving_state(self) -> dict[str, Tensor]:
        """What it takes to score as the last round was scored, in copies."""

    def commit(self, where: Path) -> tuple[Sealed, ...]:
        """What is held elsewhere is written there, into the folder `where`; it is not in `state` or `serving_state`."""
        return ()

    def restore(self, where: Path, sites: Sequence[Sealed] | None) -> None:
        """What is held elsewhere returns to what `commit` wrote; None: to where the run began."""

    def repair(self) -> None:
        """Wait until all who were lost are back; `restore` is called next."""
        raise NotImplementedError("nobody can be lost here")
