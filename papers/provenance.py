"""What stored figures were made with, and whether that is what the recipe would run today.

The record of a cell: every setting of its run, method and protocol included, defaults spelt out; the content hash of
its data; the commit and the version of the code. `compared` sets it against the settings that the same cell resolves to
today, so that a default that changes, or an option that is new, does not silently make old figures say something else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import confed
from confed.errors import ConfedError
from confed.runs.settings import Settings

ROOT = Path(__file__).parent.parent
NO_FIGURE = {"content_hash", "facts", "engine", "workers", "address", "chunk", "checkpoint_seconds", "all_views"}
"""Settings that change no figure, though more views give more of them; the hash, which is compared with the catalogue
instead; and facts of the data, which say again what today's settings make of them.
"""

Record = dict[str, Any]


def record(settings: Settings, code: Mapping[str, Any]) -> Record:
    return {"settings": dumped(settings), **code}


def dumped(settings: Settings) -> dict[str, Any]:
    """Every setting but for where files lie; options that are not set as well, which the file of a run leaves out."""
    told = settings.model_dump(mode="json", exclude={"source"})
    return told | {"method_options": settings.config().model_dump(mode="json")}


def code_here(*others: str) -> dict[str, Any]:
    """The version and the commit of this code; `dirty` where files that can change a figure are not committed, those in
    `others` among them.
    """
    version = {"confed": confed.__version__}
    try:
        commit = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "papers", *others, ":!papers/*/results.jsonl")
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, **version}  # a copy without history
    return {"commit": commit, **({"dirty": True} if changed else {}), **version}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def compared(stored: Record, today: Settings) -> Iterator[str]:
    """One line for every setting in which a record differs from what would be run today, and what to do about it."""
    was, now = flat(stored["settings"]), flat(dumped(today))
    for name in sorted((was.keys() | now.keys()) - NO_FIGURE):
        if name not in was:
            yield (
                f"{name} is {now[name]!r} today and was no setting when it ran: say what the old code did by "
                f"`python -m papers.check --assume {name}=VALUE --because WHY`, or run it again"
            )
        elif name not in now:
            yield (
                f"{name} was {was[name]!r} and is no setting today: if today's code does the same, say so by "
                f"`python -m papers.check --retire {name} --because WHY`, or run it again"
            )
        elif was[name] != now[name]:
            yield (
                f"{name} was {was[name]!r}, today it is {now[name]!r}: let the recipe say {was[name]!r} in this cell, "
                "or remove its line and run it again"
            )


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        section = isinstance(value, Mapping) and value
        found |= flat(value, f"{prefix}{name}.") if section else {f"{prefix}{name}": value}
    return found


def assume(stored: Record, name: str, value: Any, because: str) -> None:
    """Write down what a setting that was not there when the cell ran amounted to."""
    section, last = _section(stored["settings"], name)
    section[last] = value
    stored["assumed"] = [*stored.get("assumed", []), {"name": name, "because": because}]


def retire(stored: Record, name: str, because: str) -> None:
    """Take out a setting that is no longer there; what it was stays beside the settings."""
    section, last = _section(stored["settings"], name)
    value = section.pop(last)
    stored["retired"] = [*stored.get("retired", []), {"name": name, "value": value, "because": because}]


def _section(settings: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """The section that a dotted name ends in, and the name there."""
    *path, last = name.split(".")
    for part in path:
        settings = settings.setdefault(part, {})
        if not isinstance(settings, dict):
            raise ConfedError(f"{name}: {part} is a setting, not a section of settings; check the name")
    return settings, last
