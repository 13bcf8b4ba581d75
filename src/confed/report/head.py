"""What stands above the pictures: what the method does, the facts of a run, and its figures in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from confed.analysis.run import Run
from confed.methods.base import Method
from confed.methods.registry import method_named
from confed.vocabulary import Metric, view_in_words

_POPULARITY = "every user gets the items that most users have"


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    name: str
    meaning: str
    values: list[float | None]
    is_judged: bool = False
    is_part: bool = False
    """Whether it is one of several domains, below their mean."""


@dataclass(frozen=True)
class Table:
    """Test metrics of every view, and of popularity where it is known."""

    groups: list[tuple[str, list[str]]]
    """Against what is ranked, and the metrics."""
    meanings: dict[str, str]
    """Of every metric."""
    rows: list[Row]


def table(run: Run) -> Table:
    summary = run.summary
    names = [name for name in summary if name.endswith(("hr@10", "ndcg@10"))]
    metrics = [Metric.named(name) for name in names]
    groups = groupby(metrics, lambda metric: metric.against(summary["negatives"]))
    return Table(
        groups=[(against, [metric.short for metric in some]) for against, some in groups],
        meanings={metric.short: metric.meaning for metric in metrics},
        rows=list(_rows(run, names)),
    )


def _rows(run: Run, names: list[str]) -> Iterator[Row]:
    has_clients = method_named(run.settings.method).has_clients
    for view, values in run.summary["views"].items():
        meaning = view_in_words(view, has_clients=has_clients)
        yield Row(view, meaning, _picked(values, names), is_judged=view == run.summary["view"])
        yield from _domains(values, names)
    popularity = run.summary.get("popularity")
    if popularity:
        yield Row("popularity", _POPULARITY, _picked(popularity, names))
        yield from _domains(popularity, names)


def _domains(values: Mapping[str, Any], names: list[str]) -> Iterator[Row]:
    for domain, own in values.get("domains", {}).items():
        yield Row(domain, "", _picked(own, names), is_part=True)


def _picked(values: Mapping[str, Any], names: list[str]) -> list[float | None]:
    return [values.get(name) for name in names]


def facts(run: Run) -> dict[str, str]:
    """What a run is known by."""
    summary = run.summary
    found = {
        "Protocol": summary["protocol"],
        "Seed": str(summary["seed"]),
        "Users": f"{summary['users']:,}",
        "Items": f"{summary['items']:,}",
        "Round": f"{summary['best_round']} of {summary['rounds']}",
    }
    if run.domains:
        found["Domains"] = ", ".join(run.domains)
    return found


@dataclass(frozen=True)
class About:
    """What a method does, in its own words: the opening, and what one may read on."""

    title: str
    citation: str
    opening: list[str]
    rest: list[str]


def about(method: Method) -> About:
    """The opening is the first paragraph and the next, with the formulas that belong to it."""
    paragraphs = method.paragraphs()
    plain = [place for place, one in enumerate(paragraphs) if not one.startswith(" ")]
    end = next((place for place in plain[2:]), len(paragraphs))
    return About(method.title, method.citation, paragraphs[:end], paragraphs[end:])
