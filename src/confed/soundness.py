"""When training is given up: by numbers that are not finite, and by a loss beyond all meaning (D-44)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from confed.errors import DivergedError

Loss = TypeVar("Loss", float, float | None)

EXPLODED = 1e9
"""Of a client's terms, gradients and tables, what is beyond this is an accident."""
SMALLER_STEPS = "lower `learning_rate`"
LESS_NOISE = f"{SMALLER_STEPS}, or `upload_noise`"
_SMALLER_OPTIONS = "some option is out of all proportion, `confed methods show` has the usual ones"
_LEAST = 745.0
"""Nats: what has a probability of e^-745 has the least one that a number can hold."""
_NO_DECOMPOSITION = (torch.linalg.LinAlgError, np.linalg.LinAlgError)  # type: ignore[attr-defined]


def trained(
    train: Callable[[], Loss],
    state: Callable[[], Mapping[str, Tensor]],
    outcomes: int,
    remedy: str = SMALLER_STEPS,
) -> Loss:
    """The loss of a model that has its data in one place, if it is sound after a round. `outcomes`: how many a row of
    the loss is about at most, one an item.
    """
    with unless(lambda: require_finite(state(), remedy)):
        loss = train()
    if loss is not None and not abs(loss) <= _LEAST * outcomes:
        raise diverged("the loss", loss, remedy)
    # Who has no loss takes no steps that could be smaller.
    require_finite(state(), _SMALLER_OPTIONS if loss is None else remedy)
    return loss


def require_finite(state: Mapping[str, Tensor], remedy: str) -> None:
    for name, tensor in state.items():
        if not is_finite(tensor):
            raise diverged(f"a number in {name!r}", math.nan, remedy)


@contextmanager
def unless(unsound: Callable[[], None]) -> Iterator[None]:
    """Libraries refuse what is not finite, each in its own way: where `unsound` finds such numbers, these are what went
    wrong.
    """
    try:
        yield
    except _NO_DECOMPOSITION as error:
        unsound()
        reason = str(error).partition("\n")[0]
        raise DivergedError(f"a matrix cannot be decomposed ({reason}): {_SMALLER_OPTIONS}") from error
    except (ArithmeticError, RuntimeError, ValueError):
        unsound()
        raise


def require_scores(scores: Tensor, ids: Tensor) -> None:
    """(users, items): what is ranked has to be finite. `ids` are those of the users."""
    if not is_finite(scores):
        user = int(torch.nonzero(~torch.isfinite(scores).all(dim=1))[0, 0])
        raise diverged("a score of {client}", math.nan, SMALLER_STEPS, int(ids[user]))


def is_finite(tensor: Tensor) -> bool:
    """In one pass that writes nothing down."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    return bool(torch.isfinite(torch.stack(torch.aminmax(tensor.detach()))).all())


def diverged(what: str, value: float, remedy: str, client: int | None = None) -> DivergedError:
    """The error; `{client}` in `what` is whose it is."""
    said = f"is {value:.3g}" if math.isfinite(value) else "is not finite"
    return DivergedError(f"{what} {said}: {remedy}", client)
