"""What noise promises, in numbers: the exact ε of the Gaussian mechanism, of one upload and of all rounds.

The unit is what is clipped as one: a person's row in a company's upload, or all that one client changed. Two such units
differ by 2C at most, so one upload has noise of z/2 sensitivities; k uploads with noise of their own tell as much as
one with noise of z/(2√k). ε is that of Balle and Wang (2018), computed by dp-accounting.

All rounds are composed as if the same unit was sent in each: nothing is claimed for who does not take part in a round,
as a subset of fixed size is drawn in a way that the server knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from confed.errors import ConfedError

CLIENT, ROW = "all that one client sends", "one person's row in one company's upload"
"""Units: what is clipped as one."""
DELTA = 1e-5
"""The probability with which the promise may fail."""
ASSUMED = "as if it was sent in every round, each time with fresh noise; nothing is claimed for rounds without it"


def require_accounting(what: str = "noise on uploads", instead: str = "leave upload_clip and upload_noise out") -> None:
    """Noise whose promise nobody can name is not added."""
    if find_spec("dp_accounting") is None:
        raise ConfedError(
            f"{what} is accounted for by the package dp-accounting: pip install 'confed[privacy]', or {instead}"
        )


@cache
def epsilon(multiplier: float, uploads: int = 1, delta: float = DELTA) -> float:
    """Of noise of `multiplier` clipping lengths on every number, in so many uploads of the same unit."""
    from dp_accounting import get_epsilon_gaussian  # noqa: PLC0415 - an extra, which takes a second to load

    with np.errstate(divide="ignore"):  # where δ is 0 in all digits
        return float(get_epsilon_gaussian(multiplier / 2 / math.sqrt(uploads), delta))


def accounted(note: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """What a filter noted of a round, with what that promises after so many."""
    multiplier = note["noise_deviation"] / note["clip"]
    return {
        **note,
        "delta": DELTA,
        "epsilon_of_one_upload": epsilon(multiplier),
        "epsilon_of_all_rounds": epsilon(multiplier, rounds),
        "rounds": rounds,
        "assumed": ASSUMED,
    }


def in_words(note: Mapping[str, Any]) -> str:
    """What is promised, of whom, and under what."""
    return (
        f"for {note['unit']}, whatever else it might have been: ε = {note['epsilon_of_one_upload']:.3g} in one round, "
        f"ε = {note['epsilon_of_all_rounds']:.3g} in all {note['rounds']}, at δ = {note['delta']:g} ({note['assumed']})"
    )
