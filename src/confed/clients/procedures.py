"""What a client does in a round: which rows it draws, and which parameters it steps on them in which order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from torch import Tensor

from confed.clients.objectives import DenseTerm, Schedule, Term
from confed.clients.optim import Rate
from confed.random import Stream

if TYPE_CHECKING:
    from confed.clients.cohort import Cohort
    from confed.clients.sampling import LocalRows


@dataclass(frozen=True)
class Step:
    """One gradient step on the parameters named in `rates`, all others held fixed."""

    rates: Mapping[str, Rate]
    """A learning rate for everybody, or a tensor with one for each client of a gateway, by place; 0 holds one still."""
    terms: tuple[Term, ...]
    optimiser: str = "sgd"
    dense: tuple[DenseTerm, ...] = ()
    """Terms on whole item tables. They are stepped by plain gradient descent, whatever the optimiser of the rest."""


Draw = Literal["each", "pairs"]
"""Which rows a client draws: each of its positives with negatives, or as many pairs of a positive, any of them, and a
negative."""
Part = Literal["all", "support", "query"]
"""Which of its rows a client looks at: all, or one of two halves that have none in common."""


@dataclass(frozen=True)
class Phase:
    """Per batch the `steps` in order, each with a forward pass of its own; optimisers start anew with every phase."""

    steps: tuple[Step, ...]
    epochs: int
    batch_size: int
    part: Part = "all"
    schedule: Schedule = "every-step"
    """Of dense terms."""
    weight_decay: float = 0.0
    """Of plain SGD, on all parameters that are stepped, whole tables included."""
    batch_decay: float = 1.0
    """What a client's rates are multiplied by after each of its batches, anew in every phase."""
    tolerance: float | None = None
    """A client stops when its loss changes by less than this part from one epoch to the next."""

    def slowed(self, factor: float) -> Phase:
        """The phase with what is left of its rates."""
        steps = tuple(
            replace(step, rates={name: rate * factor for name, rate in step.rates.items()}) for step in self.steps
        )
        return self if factor == 1.0 else replace(self, steps=steps)

    @property
    def plain(self) -> bool:
        """Whether rates stay as they are within a round, nothing decays and nobody stops early."""
        return self.weight_decay == 0.0 and self.batch_decay == 1.0 and self.tolerance is None

    @property
    def dense(self) -> bool:
        return any(step.dense for step in self.steps)

    def without_dense(self) -> Phase:
        return replace(self, steps=tuple(replace(step, dense=()) for step in self.steps))


class Visit(ABC):
    """A phase that is no descent in batches: it changes a cohort's parameters in its own way."""

    part: ClassVar[Part] = "all"
    batch_size: ClassVar[int] = 1
    steps: ClassVar[tuple[Step, ...]] = ()
    dense: ClassVar[bool] = False

    @abstractmethod
    def train(self, cohort: Cohort, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        """By term, each client's mean value."""

    def slowed(self, factor: float) -> Self:
        """It has one pace for all rounds."""
        assert factor == 1.0, "a procedure with visits has no decay"
        return self


@dataclass(frozen=True)
class Procedure:
    """The `phases` in order, all on the rows that the client draws for the round."""

    phases: tuple[Phase | Visit, ...]
    negatives: int
    draw: Draw = "each"
    reconstruct: tuple[Phase | Visit, ...] = ()
    """What clients do before they are scored with what the server shares, where they forget what is their own."""
    virtual: float = 0.0
    """Virtual ratings per positive: random items with random labels that hide the real ones."""
    round_decay: float = 1.0
    """What all rates are multiplied by after every round."""

    def at(self, number: int) -> tuple[Phase | Visit, ...]:
        """The phases of round `number`, with the rates that are left then."""
        return tuple(phase.slowed(self.round_decay ** (number - 1)) for phase in self.phases)

    @property
    def steps(self) -> Iterator[Step]:
        """Of all phases."""
        return (step for phase in (*self.phases, *self.reconstruct) for step in phase.steps)

    @property
    def batch_size(self) -> int:
        """Of the largest batches."""
        return max(phase.batch_size for phase in self.phases)

    @property
    def dense(self) -> bool:
        return any(phase.dense for phase in self.phases)
