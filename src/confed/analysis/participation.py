"""How often each client was in CoFedRec's similar group (figure 2), and how large the groups were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.style import figure

Ints = NDArray[np.int64]


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
        bars = go.Histogram(x=self.rounds_in, xbins={"start": -0.5, "end": self.rounds + 0.5, "size": 5})
        share = f"{100 * self.share_above():.1f} % of the clients in more than 70 % of the rounds"
        return figure([bars], f"Rounds in the similar group ({share})", "rounds in the group", "clients")


def participation(history: Sequence[Mapping[str, Any]], clients: int) -> Participation:
    """From the lines of a run's metrics.jsonl, whose `server` notes say who was in."""
    inside = np.array([_members(line["server"]["members"], clients) for line in history])
    return Participation(inside.sum(axis=0), inside.sum(axis=1))


def _members(bits: str, clients: int) -> NDArray[np.bool_]:
    """Undo the strategy's packing: a bit for each client, in hexadecimal."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(bits), dtype=np.uint8))[:clients].astype(bool)
