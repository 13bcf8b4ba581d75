"""The page itself: plotly's script once, a small script for each figure, nothing fetched from anywhere."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import plotly.io
from plotly.offline import get_plotlyjs

from confed.files import written_beside
from confed.report.sections import Section, sections
from confed.runs.finished import Run

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""The browser itself refuses whatever the page might fetch."""
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } .note { color: #555; }
"""


def write_report(run: Run, path: Path, progress: Callable[[str], None] = lambda title: None) -> Path:
    """Write the report of `run` to `path`."""
    text = render(run, sections(run, progress))
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def render(run: Run, parts: Iterable[Section]) -> str:
    """The page as text."""
    summary = run.summary
    title = f"{summary['method']} on {summary['dataset']}"
    body = "\n".join(_section(part, number) for number, part in enumerate(parts))
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><title>{html.escape(title)}</title>"
        f"<link rel='icon' href='data:,'><style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body>"
        f"<h1>{html.escape(title)}</h1>{_head(summary)}{body}{_settings(run)}</body></html>\n"
    )


def _head(summary: dict[str, Any]) -> str:
    facts = (
        f"Protocol {summary['protocol']}, seed {summary['seed']}, {summary['users']:,} users, "
        f"{summary['items']:,} items, round {summary['best_round']} of {summary['rounds']}."
    )
    shown = [name for name in summary if name.endswith(("hr@10", "ndcg@10"))]
    rows = "".join(
        _row(name, values, shown)
        for view, metrics in summary["views"].items()
        for name, values in _judged(view, metrics, summary["view"])
    )
    published = "".join(
        f"<p class='note'>{html.escape(p['source'])}, {html.escape(p['ranking'])}: {p['hr']:.2f} / {p['ndcg']:.2f}</p>"
        for p in summary["published"]
    )
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
    mean = " A view's first row is the mean over domains." if "domains" in summary else ""
    return (
        f"<p>{html.escape(facts)}</p><table><tr><th>view</th>{heads}</tr>{rows}</table>"
        f"<p class='note'>Percent, on test items. full_ ranks all items, the others sampled candidates.{mean}</p>"
        f"{published}"
    )


def _judged(view: str, metrics: dict[str, Any], judged_by: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a view: its own, and one for every domain there is."""
    yield view + (" (judged by)" if view == judged_by else ""), metrics
    for domain, values in metrics.get("domains", {}).items():
        yield f"{view}, {domain}", values


def _row(name: str, values: dict[str, Any], shown: Iterable[str]) -> str:
    cells = "".join(f"<td class='number'>{values[metric]:.2f}</td>" for metric in shown)
    return f"<tr><td>{html.escape(name)}</td>{cells}</tr>"


def _section(part: Section, number: int) -> str:
    drawn = "".join(
        plotly.io.to_html(
            figure,
            full_html=False,
            include_plotlyjs=False,
            div_id=f"figure-{number}-{place}",
            config={"responsive": True},
        )
        for place, figure in enumerate(part.figures)
    )
    return f"<h2>{html.escape(part.title)}</h2><p>{html.escape(part.text)}</p>{drawn}"


def _settings(run: Run) -> str:
    return f"<h2>Settings</h2><pre>{html.escape(run.settings.to_toml())}</pre>"
