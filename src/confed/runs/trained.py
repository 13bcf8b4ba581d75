"""A run for some data: one that was trained on it before, or a fresh one. The shortest way from a file to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confed.data.registry import load
from confed.data.sources import Notice
from confed.errors import ConfedError
from confed.runs.api import DEFAULT_METHOD, run, said_once
from confed.runs.finished import Run
from confed.runs.folder import RunFolder, finished_below
from confed.runs.loop import Listener

_OF_DOMAINS = "fppdm++"


def trained(
    dataset: Any,
    method: str | None = None,
    *,
    out: Path,
    listener: Listener | None = None,
    notice: Notice | None = None,
    **reading: Any,
) -> tuple[Run, bool]:
    """The newest finished run below `out` of this method on the same content, or else a fresh one; and whether it is
    fresh.
    """
    once = said_once(notice)
    data = load(dataset, notice=once, **reading)
    chosen = method or (_OF_DOMAINS if len(data.parts) > 1 else DEFAULT_METHOD)
    for folder in finished_below(out):
        if _fits(folder, chosen, data.content_hash):
            return Run(folder), False
    return run(chosen, dataset, out=out, listener=listener, notice=once, **reading), True


def _fits(folder: RunFolder, method: str, content_hash: str) -> bool:
    """A folder that cannot be read is somebody else's trouble."""
    try:
        settings = folder.settings()
    except ConfedError:
        return False
    return (settings.method, settings.content_hash) == (method, content_hash)
