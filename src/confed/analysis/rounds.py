"""Numbers round by round: a picture of them, and what is seen on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import plotly.graph_objects as go

from confed.analysis.course import Course
from confed.analysis.style import MUTED, SERIES, figure, whole_numbers

_FEW = 40
"""Rounds of which each has a dot of its own; one round alone would be no line."""
_DOTTED = {"dash": "dot", "width": 1.5}


@dataclass(frozen=True)
class Levels:
    """What does not change by rounds: dotted lines."""

    name: str
    values: Mapping[str, float]
    """By the line whose colour it has, or under "" one that is beside them all."""


@dataclass(frozen=True)
class Curves:
    """One value per evaluated round for every line of a picture, by its name."""

    rounds: list[int]
    lines: Mapping[str, list[float]]
    title: str
    unit: str
    subject: str
    """What the lines are of, as a sentence begins."""
    form: str = "{:.1f}"
    """How a value is printed in a sentence."""
    from_zero: bool = False
    chosen: int | None = None
    """The round that is marked."""
    levels: Levels | None = None
    dashed: Collection[str] = ()
    """Lines that would hide others."""

    def figure(self) -> go.Figure:
        made = figure(list(self._traces()), self.title, "round", self.unit)
        made.update_layout(showlegend=len(made.data) > 1, hovermode="x unified", hoverlabel_namelength=-1)
        made.update_yaxes(hoverformat=".4~g")
        made.update_xaxes(showspikes=False, **whole_numbers(self.rounds[0], self.rounds[-1]))
        if self.from_zero:
            made.update_yaxes(rangemode="tozero")
        for name, level in self.levels.values.items() if self.levels else ():
            made.add_hline(level, line={**_DOTTED, "color": self._colours().get(name, MUTED)})
        if self.chosen is not None:
            _mark(made, self.chosen, leftwards=2 * self.chosen > self.rounds[0] + self.rounds[-1])
        return made

    def _traces(self) -> Iterator[go.Scatter]:
        """The lines; and, for the legend alone, a dotted one."""
        for name, colour in self._colours().items():
            dashed = name in self.dashed
            mode = "lines" if dashed or len(self.rounds) > _FEW else "lines+markers"
            line = {"color": colour, "dash": "dash" if dashed else "solid"}
            yield go.Scatter(x=self.rounds, y=self.lines[name], mode=mode, name=name, line=line)
        if self.levels:
            yield go.Scatter(x=[None], y=[None], mode="lines", name=self.levels.name, line={**_DOTTED, "color": MUTED})

    def _colours(self) -> dict[str, str]:
        return {name: SERIES[place % len(SERIES)] for place, name in enumerate(self.lines)}

    @property
    def said(self) -> str:
        """What is seen."""
        courses = {name: str(self._course(name)) for name in self.lines}
        named = "; ".join(f"{name} {course}" for name, course in courses.items())
        seen = f" {next(iter(courses.values()))}" if len(courses) == 1 else f": {named}"
        return f"{self.subject}{seen}{self._choice()}.{self._dotted()}"

    def _course(self, name: str) -> Course:
        return Course(self.rounds, self.lines[name], self.form)

    def _choice(self) -> str:
        """The chosen round, and what the lines have there."""
        if self.chosen is None:
            return ""
        place = self.rounds.index(self.chosen)
        there = {name: self._course(name).at(place) for name in self.lines}
        said = next(iter(there.values())) if len(there) == 1 else _listed(there)
        return f"; round {self.chosen} was chosen, with {said}"

    def _dotted(self) -> str:
        if self.levels is None:
            return ""
        values = {name: self.form.format(value) for name, value in self.levels.values.items()}
        return f" Dotted: {self.levels.name}, {_listed(values)}."


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in values.items())


def _mark(made: go.Figure, chosen: int, *, leftwards: bool) -> None:
    """A line at the chosen round; its label stands above the picture, towards the middle."""
    made.add_vline(
        chosen,
        line={"width": 1, "color": MUTED},
        annotation={
            "text": f"round {chosen} chosen",
            "y": 1,
            "yanchor": "bottom",
            "xanchor": "right" if leftwards else "left",
            "font": {"size": 12, "color": MUTED},
        },
    )
