"""Steps of Adam in compiled loops, with the usual arithmetic (Kingma and Ba 2015)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.compiled import compiled

Floats = NDArray[np.floating]
Constants = tuple[float, float, float]
"""Both betas, and epsilon."""
ADAM: Constants = (0.9, 0.999, 1e-8)
"""The usual ones."""
_NOTHING = 1e-18
"""Of a momentum: what is left of it moves no number any more."""


@compiled
def adam_step(
    param: Floats,
    gradient: Floats,
    first: Floats,
    second: Floats,
    rate: float,
    correction: float,
    constants: Constants,
) -> None:
    """One step; `rate` and `correction` have what the moments lack so early."""
    kind = param.dtype.type
    beta_1, beta_2, epsilon = kind(constants[0]), kind(constants[1]), kind(constants[2])
    share_1, share_2 = kind(1.0 - constants[0]), kind(1.0 - constants[1])
    own, larger = kind(rate), kind(correction)
    for c in range(len(param)):
        first[c] = beta_1 * first[c] + share_1 * gradient[c]
        second[c] = beta_2 * second[c] + share_2 * gradient[c] * gradient[c]
        param[c] -= own * first[c] / (np.sqrt(second[c]) * larger + epsilon)


@compiled
def adam_schedule(rate: float, done: int, steps: int, constants: Constants) -> tuple[Floats, Floats]:
    """`rate` and `correction` of the next `steps` steps, after `done`."""
    rates, corrections = np.empty(steps), np.empty(steps)
    for step in range(steps):
        rates[step] = rate / (1.0 - constants[0] ** (done + step + 1))
        corrections[step] = (1.0 - constants[1] ** (done + step + 1)) ** -0.5
    return rates, corrections


@compiled
def adam_without_gradient(
    param: Floats,
    first: Floats,
    second: Floats,
    root: Floats,
    rates: Floats,
    corrections: Floats,
    constants: Constants,
) -> None:
    """Several steps at once of parameters whose gradient is zero meanwhile: momentum carries them on, and fades away.

    `root` is room for as many numbers.
    """
    kind, steps = param.dtype.type, len(rates)
    if steps == 0 or not second.any():
        return
    beta_1, root_2, epsilon = kind(constants[0]), kind(np.sqrt(constants[1])), kind(constants[2])
    lasts = min(steps, int(np.log(_NOTHING) / np.log(constants[0])))
    for c in range(len(param)):
        root[c] = np.sqrt(second[c])
    for step in range(lasts):
        own, larger = kind(rates[step]), kind(corrections[step])
        for c in range(len(param)):
            first[c] *= beta_1
            root[c] *= root_2
            param[c] -= own * first[c] / (root[c] * larger + epsilon)
    first *= kind(constants[0] ** (steps - lasts))
    second *= kind(constants[1] ** steps)
