"""The page itself: plotly's script once, the figures as data, a small script that draws them, nothing fetched."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from confed.analysis.run import Run
from confed.analysis.style import PALETTE
from confed.errors import ConfedError
from confed.files import written_beside
from confed.methods.registry import method_named
from confed.report.head import about, facts, table
from confed.report.samples import Sample
from confed.report.samples import samples as examples
from confed.report.section import Section
from confed.report.sections import sections
from confed.visible import visible_lines

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""The browser itself refuses whatever the page might fetch."""
_LABELLED, _BARE = 28, 12
"""Pixels above a figure without its title: with room for the label of a line, or for nothing."""


def write_report(
    run: Run, path: Path, progress: Callable[[str], None] = lambda title: None, *, samples: bool = True
) -> Path:
    """Write the report of `run` to `path`; without `samples` it shows nobody's items."""
    if not path.parent.is_dir():
        raise ConfedError(f"{path.parent}: there is no such folder to write the report to; make it, or name another")
    text = render(run, sections(run, progress), examples(run) if samples else ())
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def render(run: Run, parts: Iterable[Section], shown: Iterable[Sample] = ()) -> str:
    """The page as text."""
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=f"{run.summary['method']} on {run.summary['dataset']}",
            about=about(method_named(run.settings.method)),
            facts=facts(run),
            table=table(run),
            published=run.summary["published"],
            samples=list(shown),
            sections=list(parts),
            settings=run.settings.without_source().to_toml(),
            palette=PALETTE,
            policy=_POLICY,
            plotly=Markup(get_plotlyjs()),
        )
    )


def _environment() -> Environment:
    """Whatever the template is given is shown and not obeyed, but for plotly's own script."""
    made = Environment(
        loader=PackageLoader("confed.report", "."),
        autoescape=True,
        finalize=_finalised,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"described": _described, "caption": _caption, "with_code": _with_code, "dedent": textwrap.dedent}
    return made


def _finalised(value: Any) -> Any:
    """Text in which nothing hides; `autoescape` sees to the rest."""
    return visible_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _caption(figure: go.Figure) -> str:
    """The page says a figure's title above it, where it is wrapped like any text."""
    return str(figure.layout.title.text)


def _described(figure: go.Figure) -> dict[str, Any]:
    """A figure without its title, as plain data."""
    described: dict[str, Any] = json.loads(figure.to_json())
    del described["layout"]["title"]
    described["layout"]["margin"]["t"] = _LABELLED if figure.layout.annotations else _BARE
    return described


def _with_code(text: str) -> Markup:
    """Docstrings have names between backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
