"""How results are shown to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table

from confed.visible import shown

_CAPTION = (
    "HR@10 and NDCG@10 in percent, on test items, against {negatives} sampled candidates; full ranking: against all "
    "items. Round: the chosen one, of all. Traffic: per client and round, up / down."
)
_UNMEASURED = "Nothing was held out, so nothing was measured. Traffic: per client and round, up / down."


def results(summaries: Sequence[Mapping[str, Any]]) -> Group:
    """All there is to see of one run, or of several on the same data."""
    tables = [results_table(summaries)]
    if "domains" in summaries[0]:
        tables.append(domains_table(summaries))
    return Group(*tables)


def defaults_line(summary: Mapping[str, Any]) -> str:
    """Which settings count where nothing was said, why these, and where to read more."""
    return (
        f"defaults: where you said nothing, {summary['defaults']}. `confed methods show {summary['method']}` explains "
        f"every setting, --set changes one"
    )


def results_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Quality, cost and, under `paper`, the published figure beside ours; one row per method."""
    first = summaries[0]
    paper = any(summary["published"] for summary in summaries)
    seeds = len(first.get("runs", [first]))
    title = f"{shown(first['dataset'])}, protocol {first['protocol']}, {seeds} seed{'s' if seeds > 1 else ''}"
    means = " Of several domains: the mean; clients are companies." if "domains" in first else ""
    # As narrow as a terminal of 80 columns wants it.
    shape: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": 0, "pad_edge": False, "show_edge": False}
    caption = _CAPTION.format(negatives=first["negatives"]) + means if "hr@10" in first else _UNMEASURED
    table = Table(title=title, caption=caption, **shape)
    headings = ["method", "view", "HR / NDCG", "full ranking", "round", "s/round", "MB", "traffic"]
    if paper:
        headings.insert(3, "published")
    for heading in headings:
        name = heading in ("method", "view")
        # In a narrow window figures go on in the next line; cut off they would be of no use.
        table.add_column(heading, justify="left" if name else "right", no_wrap=name, overflow="fold")
    for summary in summaries:
        row = [
            summary["method"],
            summary["view"],
            _pair(summary, ""),
            _pair(summary, "full_"),
            _rounds(summary),
        ]
        row += [f"{summary['seconds_per_round']:.2f}", f"{summary['peak_rss_mb']:.0f}", _traffic(summary)]
        if paper:
            row.insert(3, _published(summary))
        table.add_row(*row)
    line = _yardstick(summaries)
    if line:
        table.add_row("popularity", "", _pair(line, ""), *(["–"] if paper else []), _pair(line, "full_"), style="dim")
    return table


def _yardstick(summaries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What popularity gets on the same test items, unless it has a row of its own."""
    if any(summary["method"] == "popularity" for summary in summaries):
        return None
    return next((summary["popularity"] for summary in summaries if "popularity" in summary), None)


def domains_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Quality in every domain: of each a row per method, with a line for every ranking."""
    table = Table(title="Every domain, percent on test items", show_lines=True)
    metrics = ("hr@5", "ndcg@5", "hr@10", "ndcg@10")
    for heading in ("domain", "method", "ranking"):
        table.add_column(heading, no_wrap=True)
    for metric in metrics:
        table.add_column(metric.upper(), justify="right", no_wrap=True)
    for domain in summaries[0]["domains"]:
        for summary in summaries:
            quality = _of_domain(summary, domain)
            rankings = [name.removesuffix("hr@10") for name in quality if name.endswith("hr@10")]
            columns = [[_value(quality, ranking + metric) for ranking in rankings] for metric in metrics]
            headings = [_heading(ranking, summary["negatives"]) for ranking in rankings]
            lines = map("\n".join, [headings, *columns])
            table.add_row(domain, summary["method"], *lines)
    return table


def _heading(ranking: str, negatives: int) -> str:
    """Against what is ranked, from the prefix of the metrics."""
    if ranking == "full_":
        return "all items"
    return f"{ranking.removeprefix('neg').rstrip('_') or negatives} candidates"


def _of_domain(summary: Mapping[str, Any], domain: str) -> Mapping[str, Any]:
    spread = {"std": summary["std"]["domains"][domain]} if "std" in summary else {}
    return {**summary["domains"][domain], **spread}


def _pair(summary: Mapping[str, Any], prefix: str) -> str:
    """Hit rate and NDCG at 10."""
    return " / ".join(_value(summary, f"{prefix}{metric}@10") for metric in ("hr", "ndcg"))


def _value(summary: Mapping[str, Any], metric: str) -> str:
    """In percent, with the standard deviation over seeds where there are several."""
    if metric not in summary:
        return "–"
    spread = f" ± {summary['std'][metric]:.2f}" if "std" in summary else ""
    return f"{summary[metric]:.2f}{spread}"


def _published(summary: Mapping[str, Any]) -> str:
    """The first published figure with sampled candidates."""
    cells = [f"{p['hr']:.2f} / {p['ndcg']:.2f}" for p in summary["published"] if p["ranking"] == "sampled"]
    return cells[0] if cells else "–"


def _rounds(summary: Mapping[str, Any]) -> str:
    """The one that validation chose, of all."""
    return f"{summary['best_round']:.0f}/{summary['rounds']:.0f}"


def _traffic(summary: Mapping[str, Any]) -> str:
    up, down = (summary[f"{way}_bytes"] / max(summary["participations"], 1) for way in ("upload", "download"))
    if not up and not down:
        return "–"
    (sent, unit), (received, other) = (human_bytes(count).split(" ") for count in (up, down))
    sent, received = (f"{float(number):.3g}" for number in (sent, received))
    return f"{sent} / {received} {unit}" if unit == other else f"{sent} {unit} / {received} {other}"


def human_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
