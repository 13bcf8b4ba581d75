"""The Gaussian mechanism on rows that leave a company: each is clipped to a length and gets noise.

Noise of deviation z·C on a row of length at most C hides that row from whoever sees the upload: rows in a ball of
radius C differ by at most 2C, so the row is (ε, δ)-private with ε = 2 √(2 ln(1.25/δ)) / z where that is below 1 (Dwork
and Roth 2014, theorem A.1). This speaks of one row in one company's upload. It does not speak of a person's
interactions, which shape other people's rows as well; rounds add up, and so do companies that send rows of the same
person. In a simulation the noise is a function of the seed; a deployment has to draw it in secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from confed.random import keyed, standard_normal


@dataclass(frozen=True)
class GaussianMechanism:
    """Clips to `clip`, then adds noise of deviation `multiplier` · `clip` to every number."""

    clip: float
    multiplier: float

    @property
    def deviation(self) -> float:
        return self.multiplier * self.clip

    def epsilon(self, delta: float = 1e-5) -> float:
        """Of one row of one upload; the theorem holds for values below 1, larger ones are an order of magnitude."""
        return 2 * math.sqrt(2 * math.log(1.25 / delta)) / self.multiplier

    def protect(self, rows: Tensor, *key: object) -> Tensor:
        """Rows (n, d) as they may leave; the noise is a function of `key`."""
        noise = standard_normal(rows, keyed(*key))
        length = rows.norm(dim=1, keepdim=True)
        clipped: Tensor = rows * (self.clip / length.clamp_min(self.clip))
        return clipped + self.deviation * noise

    def note(self, rows: Tensor) -> dict[str, float]:
        """What was done to `rows`, for the record."""
        length = rows.norm(dim=1)
        return {
            "clip": self.clip,
            "noise_deviation": self.deviation,
            "mean_length": float(length.mean()),
            "clipped_share": float((length > self.clip).double().mean()),
            "epsilon_of_one_upload": self.epsilon(),
        }
