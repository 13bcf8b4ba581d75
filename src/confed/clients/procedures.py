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
    """A learning rate for everybody, or a tensor with one for each client, by client number; 0 holds a client still."""
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

    @property
    def dense(self) -> bool:
        return any(step.dense for step in self.steps)

    def without_dense(self) -> Procedure:
        return replace(self, steps=tuple(replace(step, dense=()) for step in self.steps))
