"""How often each client was in CoFedRec's similar group (figure 2), and how large the groups were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.style import figure, whole_numbers

Ints = NDArray[np.int64]

_MOST_BARS = 25


@dataclass(frozen=True)
class Participation:
    """Per client the number of rounds in a group, and per round the number of clients in one."""

    rounds_in: Ints
    members: Ints

    @property
    def rounds(self) -> int:
        return len(self.members)

    def share_above(self, fraction: float = 0.7) -> float:
        """The share of clients that were in a group in more than this fraction of the rounds."""
        return float((self.rounds_in > fraction * self.rounds).mean())

    @property
    def mean_share(self) -> float:
        """The mean share of clients in a group."""
        return float(self.members.mean() / len(self.rounds_in))

    def figure(self) -> go.Figure:
        width = self.rounds // _MOST_BARS + 1
        bars = go.Histogram(x=self.rounds_in, xbins={"start": -0.5, "end": self.rounds + width, "size": width})
        made = figure([bars], "Rounds in the similar group", "rounds in the group", "clients", bargap=0.1)
        return made.update_xaxes(whole_numbers(0, self.rounds))

    @property
    def said(self) -> str:
        """What is seen."""
        always, never = ((self.rounds_in == count).mean() for count in (self.rounds, 0))
        shares = (self.mean_share, self.share_above(), always, never)
        mean, mostly, always, never = (f"{100 * share:.1f} %" for share in shares)
        return (
            f"On average {mean} of the clients were in the group; {mostly} were in it in more than 70 % of the rounds, "
            f"{always} in all {self.rounds}, {never} in none."
        )


def participation(history: Sequence[Mapping[str, Any]], clients: int) -> Participation:
    """From the lines of a run's metrics.jsonl, whose `server` notes say who was in."""
    inside = np.array([_members(line["server"]["members"], clients) for line in history])
    return Participation(inside.sum(axis=0), inside.sum(axis=1))


def _members(bits: str, clients: int) -> NDArray[np.bool_]:
    """Undo the strategy's packing: a bit for each client, in hexadecimal."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(bits), dtype=np.uint8))[:clients].astype(bool)
