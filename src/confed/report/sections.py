"""What a report shows of a run, as far as the run has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from confed.report.companies import domains, noise, preferences
from confed.report.groups import elbow, groups, items, users
from confed.report.section import Section
from confed.report.training import costs, learning
from confed.report.two_tables import correlation, degradation, overlap
from confed.runs.finished import Run

_MAKERS: tuple[Callable[[Run], Section | None], ...] = (
    learning,
    domains,
    costs,
    noise,
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
