"""One look for all figures. They have the colours of a light page; whoever shows them on a dark one exchanges these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

PALETTE = {
    "paper": ("#ffffff", "#15181c"),
    "surface": ("#fbfbfc", "#1c2025"),
    "ink": ("#1f2429", "#e4e7ea"),
    "muted": ("#5a636d", "#9ea8b3"),
    "line": ("#e1e5e9", "#333a42"),
    "low": ("#a8c8e4", "#2c5f8d"),
    "high": ("#0b3a66", "#d3e8fb"),
    "minus": ("#b5442e", "#f08a6e"),
    "plus": ("#1f639a", "#6fb4ea"),
    "series-1": ("#2f6f9f", "#6cb2e8"),
    "series-2": ("#d1662f", "#f2935b"),
    "series-3": ("#4f9d69", "#7fcf9a"),
    "series-4": ("#8a5aa8", "#c39de2"),
    "series-5": ("#b8860b", "#e0b84a"),
    "series-6": ("#5b6470", "#a9b3bf"),
    "series-7": ("#c2436b", "#f283a5"),
    "series-8": ("#2a9d9d", "#5fd0d0"),
    "series-9": ("#7a7a2e", "#bcbc62"),
    "series-10": ("#9c4b2f", "#d98b6a"),
    "series-11": ("#3d4fb0", "#97a4ff"),
    "series-12": ("#1b7f4b", "#4fdd9c"),
    "series-13": ("#a13d96", "#ee8be3"),
    "series-14": ("#8c6d5a", "#c9a893"),
    "series-15": ("#5f8fb8", "#a8d4ff"),
    "series-16": ("#c9302c", "#ff7f76"),
}
"""By what it is for, a colour on a light page and the same on a dark one. No light colour serves two purposes."""
INK, MUTED = PALETTE["ink"][0], PALETTE["muted"][0]
SERIES = tuple(light for name, (light, _) in PALETTE.items() if name.startswith("series"))
COLOUR_BAR = {"thickness": 12, "outlinewidth": 0}
_LINE, _NONE = PALETTE["line"][0], "rgba(0,0,0,0)"
_MOST_TICKS = 8

_AXIS = {
    "gridcolor": _LINE,
    "linecolor": _LINE,
    "zerolinecolor": _LINE,
    "automargin": True,
    "title": {"standoff": 8, "font": {"size": 13}},
    "ticks": "",
}
_TEMPLATE = go.layout.Template(
    layout={
        "colorway": list(SERIES),
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": _NONE,
        "plot_bgcolor": _NONE,
        "xaxis": {**_AXIS, "zeroline": False},
        "yaxis": _AXIS,
        "hoverlabel": {"bgcolor": PALETTE["paper"][0], "bordercolor": _LINE, "font": {"color": INK}, "namelength": 0},
        "modebar": {"bgcolor": _NONE, "color": MUTED, "activecolor": INK},
        # Below the picture there is room for any number of names, on a telephone too.
        "legend": {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
    }
)


def figure(traces: Sequence[Any], title: str, x: str, y: str, **layout: Any) -> go.Figure:
    """A figure in the house style."""
    made = go.Figure(list(traces))
    made.update_layout(
        template=_TEMPLATE,
        title={"text": title, "font": {"size": 15}},
        xaxis_title=x,
        yaxis_title=y,
        margin={"l": 10, "r": 10, "t": 50, "b": 10},  # axes take what they need
        height=380,
        **layout,
    )
    return made


def without_scale(made: go.Figure) -> go.Figure:
    """For planes on which only nearness means anything."""
    for axes in (made.update_xaxes, made.update_yaxes):
        axes(showticklabels=False, zeroline=False)
    return made


def whole_numbers(first: int, last: int) -> dict[str, Any]:
    """An axis from one whole number to another, with ticks at whole numbers only and not too many of them."""
    steps = (digit * 10**power for power in range(10) for digit in (1, 2, 5))
    step = next(step for step in steps if last - first <= step * _MOST_TICKS)
    return {"tick0": 0, "dtick": step, "range": [first - 0.5, last + max(0.5, 0.02 * (last - first))]}
