"""What a report is made of: sections, each with pictures and a sentence on what is seen in every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import plotly.graph_objects as go


class Analysis(Protocol):
    """What one looks at afterwards."""

    def figure(self) -> go.Figure: ...

    @property
    def said(self) -> str: ...


@dataclass(frozen=True)
class Picture:
    """A figure, and what is seen in it."""

    figure: go.Figure
    said: str

    @classmethod
    def of(cls, analysis: Analysis) -> Picture:
        return cls(analysis.figure(), analysis.said)


@dataclass(frozen=True)
class Fold:
    """What is shown when somebody asks for it."""

    title: str
    text: str
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Section:
    """Pictures, and what they are of."""

    title: str
    text: str
    pictures: Sequence[Picture]
    fold: Fold | None = None
