"""What a report shows of a run, as far as the run has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import plotly.graph_objects as go

from confed.analysis.run import Run
from confed.report.companies import domains, noise, preferences, release
from confed.report.groups import elbow, groups, items, users
from confed.report.section import Section
from confed.report.training import costs, learning
from confed.report.two_tables import correlation, degradation, overlap

_MAKERS: tuple[Callable[[Run], Section | None], ...] = (
    learning,
    domains,
    costs,
    noise,
    release,
    preferences,
    groups,
    elbow,
    items,
    users,
    overlap,
    correlation,
    degradation,
)
"""In reading order."""


def sections(run: Run, progress: Callable[[str], None] = lambda title: None) -> Iterator[Section]:
    """All sections the run has data for; `progress` hears of each that is made."""
    for make in _MAKERS:
        section = make(run)
        if section:
            progress(section.title)
            yield section


def figures(run: Run) -> dict[str, go.Figure]:
    """The pictures of all sections, by their titles; of several with the same title, each after its section's."""
    found: dict[str, go.Figure] = {}
    for section in sections(run):
        for picture in (*section.pictures, *(section.fold.pictures if section.fold else ())):
            title = str(picture.figure.layout.title.text)
            found[f"{section.title}: {title}" if title in found else title] = picture.figure
    return found
