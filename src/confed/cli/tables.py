"""How results are shown to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table


def results_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Quality, cost and, under `paper`, the published figure beside ours; one row per method."""
    first = summaries[0]
    paper = any(summary["published"] for summary in summaries)
    seeds = len(first.get("runs", [first]))
    title = f"{first['dataset']}, protocol {first['protocol']}, {seeds} seed{'s' if seeds > 1 else ''}"
    table = Table(title=title, caption="percent; full: all items ranked; bytes: per client and round, up / down")
    for heading in ("method", "view", "HR@10", "NDCG@10"):
        table.add_column(heading, justify="left" if heading in ("method", "view") else "right")
    if paper:
        table.add_column("published", justify="right")
    for heading in ("full HR@10", "full NDCG@10", "rounds", "s/round", "MB", "bytes"):
        table.add_column(heading, justify="right")
    for summary in summaries:
        table.add_row(*_row(summary, paper))
    return table


def _row(summary: Mapping[str, Any], paper: bool) -> list[str]:
    row = [summary["method"], summary["view"], _value(summary, "hr@10"), _value(summary, "ndcg@10")]
    if paper:
        row.append(published_cell(summary, "sampled"))
    row += [_value(summary, "full_hr@10"), _value(summary, "full_ndcg@10"), _rounds(summary)]
    row += [f"{summary['seconds_per_round']:.2f}", f"{summary['peak_rss_mb']:.0f}", _traffic(summary)]
    return row


def _value(summary: Mapping[str, Any], metric: str) -> str:
    spread = f" ± {summary['std'][metric]:.2f}" if "std" in summary else ""
    return f"{summary[metric]:.2f}{spread}"


def published_cell(summary: Mapping[str, Any], ranking: str) -> str:
    """The first published figure of that ranking."""
    cells = [f"{p['hr']:.2f} / {p['ndcg']:.2f}" for p in summary["published"] if p["ranking"] == ranking]
    return cells[0] if cells else "–"


def _rounds(summary: Mapping[str, Any]) -> str:
    best = f" (best {summary['best_round']})" if "best_round" in summary else ""
    return f"{summary['rounds']}{best}"


def _traffic(summary: Mapping[str, Any]) -> str:
    participations = max(summary["participations"], 1)
    up, down = (summary[f"{way}_bytes"] / participations for way in ("upload", "download"))
    return f"{human_bytes(up)} / {human_bytes(down)}" if up or down else "–"


def human_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
