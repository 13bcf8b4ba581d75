"""What came of a case: it held, or it broke and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Of what held, `how` says by which way: the same result, or a clear refusal."""

    held: bool
    how: str
    slowest_step: float | None = None
    """Seconds, of a case that runs more than one program or is many cases in one."""
    undisturbed: float = 0.0
    """Seconds that a step takes where nothing is in its way: only what is more can be a hang."""
