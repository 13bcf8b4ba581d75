"""One look for all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

COLOURS = ("#2f6f9f", "#d1662f", "#4f9d69", "#8a5aa8", "#b8860b", "#5b6470", "#c2436b", "#2a9d9d", "#7a7a2e", "#9c4b2f")


def figure(traces: Sequence[Any], title: str, x: str, y: str, **layout: Any) -> go.Figure:
    """A figure in the house style."""
    made = go.Figure(list(traces))
    made.update_layout(
        title={"text": title, "font": {"size": 15}},
        xaxis_title=x,
        yaxis_title=y,
        template="plotly_white",
        colorway=list(COLOURS),
        font={"family": "system-ui, sans-serif", "size": 13},
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
        height=380,
        **layout,
    )
    return made
