"""What two runs must have in common to be the same: all but how long they took and where they lie."""

from pathlib import Path
from typing import Any

import torch

from confed.runs.checkpoint import Checkpoint
from confed.runs.folder import RunFolder

_OWN = {"seconds", "seconds_per_round", "peak_rss_mb", "run_dir", "place"}


def outcome(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], Checkpoint]:
    """Summary, history and checkpoint."""
    folder = RunFolder.open(path)
    summary, lines, checkpoint = folder.summary(), folder.metrics(), folder.load_checkpoint()
    assert checkpoint is not None, "a summary without a checkpoint is none"
    return _common(summary), [_common(line) for line in lines], checkpoint


def difference(one: Path, other: Path) -> str:
    """The first thing that two runs do not have in common; nothing, if they are the same."""
    (summary, history, kept), (summary_2, history_2, kept_2) = outcome(one), outcome(other)
    if summary != summary_2:
        return f"summary: {sorted(name for name in summary if summary[name] != summary_2.get(name))}"
    if history != history_2:
        return f"history: {len(history)} and {len(history_2)} rounds"
    if kept.progress != kept_2.progress:
        return f"progress: {kept.progress} and {kept_2.progress}"
    for part in ("state", "best", "ranks"):
        tensors, others = getattr(kept, part), getattr(kept_2, part)
        if tensors.keys() != others.keys() or not all(torch.equal(t, others[name]) for name, t in tensors.items()):
            return f"checkpoint: {part}"
    return ""


def _common(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in _OWN}
