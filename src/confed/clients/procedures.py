"""Which parameters are stepped in which order: the local procedure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from confed.clients.objectives import DenseTerm, Schedule, Term
from confed.clients.optim import Rate


@dataclass(frozen=True)
class Step:
    """One gradient step on the parameters named in `rates`, all others held fixed."""

    rates: Mapping[str, Rate]
    """A learning rate for everybody, or a tensor with one for each client of a gateway, by place; 0 holds one still."""
    terms: tuple[Term, ...]
    optimiser: str = "sgd"
    dense: tuple[DenseTerm, ...] = ()
    """Terms on whole item tables. They are stepped by plain gradient descent, whatever the optimiser of the rest."""


@dataclass(frozen=True)
class Procedure:
    """Per batch the `steps` in order, each with a forward pass of its own; optimisers start anew every round."""

    steps: tuple[Step, ...]
    epochs: int
    batch_size: int
    negatives: int
    schedule: Schedule = "every-step"
    """Of dense terms."""
    virtual: float = 0.0
    """Virtual ratings per positive: random items with random labels that hide the real ones."""
    weight_decay: float = 0.0
    """Of plain SGD, on all parameters that are stepped, whole tables included."""
    batch_decay: float = 1.0
    """What a client's rates are multiplied by after each of its batches, anew every round."""
    round_decay: float = 1.0
    """What all rates are multiplied by after every round."""
    tolerance: float | None = None
    """A client stops when its loss changes by less than this part from one epoch to the next."""

    def at(self, number: int) -> Procedure:
        """The procedure of round `number`, with the rates that are left then."""
        factor = self.round_decay ** (number - 1)
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

    def without_dense(self) -> Procedure:
        return replace(self, steps=tuple(replace(step, dense=()) for step in self.steps))
