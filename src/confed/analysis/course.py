"""The course of a number over rounds, in words: how it moves between its ends, its lowest and its highest value.

Words follow from the numbers as they are printed: what prints the same has not moved. A number is called flat where it
keeps within a twentieth of its whole range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_FLAT = 0.05
_STILL = 0.02
"""Of the largest value: a smaller range than this is told by its ends, whatever happens in it."""


@dataclass(frozen=True)
class Course:
    """Values of some rounds, in their order, and how they are printed."""

    rounds: Sequence[int]
    values: Sequence[float]
    form: str = "{:.1f}"

    def __str__(self) -> str:
        """What follows the number's name: "rises from 31.2 in round 1 to 60.4 in round 28 and is flat after it"."""
        low, high = min(self.values), max(self.values)
        if len(self.values) == 1:
            return f"is {self.at(0)} in round {self.rounds[0]}, the only one shown"
        if self._print(low) == self._print(high):
            return f"is {self.at(0)} in all {len(self.values)} rounds shown"
        if high - low <= _STILL * max(abs(low), abs(high)) or len(self.landmarks) == 1:
            return f"stays between {self._print(low)} and {self._print(high)}"
        return ", then ".join(self._legs()) + self._ending()

    def at(self, place: int) -> str:
        return self._print(self.values[place])

    def _print(self, value: float) -> str:
        return self.form.format(value)

    @property
    def landmarks(self) -> list[int]:
        """Places of the first value, the lowest and the highest; of the latter two what is not near the first."""
        extremes = sorted(self.values.index(extreme) for extreme in (min(self.values), max(self.values)))
        return [0, *(place for place in extremes if not self._flat(0, place))]

    def _flat(self, place: int, other: int) -> bool:
        """Whether two values differ by hardly anything, or by nothing one would read."""
        tolerated = _FLAT * (max(self.values) - min(self.values))
        return self.at(place) == self.at(other) or abs(self.values[place] - self.values[other]) <= tolerated

    def _legs(self) -> Iterator[str]:
        """From landmark to landmark."""
        for before, after in pairwise(self.landmarks):
            origin = f" from {self.at(before)} in round {self.rounds[before]}" if before == 0 else ""
            yield f"{self._verb(before, after)}{origin} to {self.at(after)} in round {self.rounds[after]}"

    def _verb(self, before: int, after: int) -> str:
        return "rises" if self.values[after] > self.values[before] else "falls"

    def _ending(self) -> str:
        """What comes after the last landmark."""
        mark, last = self.landmarks[-1], len(self.values) - 1
        rest = range(mark + 1, last + 1)
        if not rest:
            return ""
        if all(self._flat(mark, place) for place in rest):
            return " and is flat after it"
        low, high = (extreme(self.values[place] for place in rest) for extreme in (min, max))
        furthest = low if self._verb(mark, last) == "falls" else high
        if self.values[last] == furthest and not self._flat(mark, last):
            return f", then {self._verb(mark, last)} to {self.at(last)} in round {self.rounds[last]}"
        return f", then is between {self._print(low)} and {self._print(high)}"
