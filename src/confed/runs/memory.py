"""Peak memory of a run, not of the process, as several runs may follow each other in one; and what takes too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from confed.config import MethodConfig
from confed.errors import ConfedError

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def reset_peak() -> None:
    """Start the peak anew, where the system can (Linux); elsewhere it stays that of the process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_rss_mb() -> float:
    """The largest resident memory since `reset_peak`, in MiB; where no peak is kept (macOS), what is held now."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        held = psutil.Process().memory_info()
        return float(getattr(held, "peak_wset", held.rss)) / (1 << 20)


_REFUSALS = ("not enough memory", "storage size calculation overflowed", "array is too big", "allowed dimension")
"""How torch and numpy say it, if not by a MemoryError."""
_USUAL = 10
"""So many times its default makes an option suspicious."""


@contextmanager
def within_memory(config: MethodConfig) -> Iterator[None]:
    """Whatever does not fit is said of the options that are unusually large."""
    try:
        yield
    except (MemoryError, RuntimeError, ValueError) as error:
        if not isinstance(error, MemoryError) and not any(one in str(error).lower() for one in _REFUSALS):
            raise
        large = ", ".join(f"`{name}` ({value:,})" for name, value in _large(config).items())
        remedy = f"lower {large}" if large else "use fewer users or items, or smaller options"
        raise ConfedError(f"this does not fit into the memory of this machine: {remedy}") from error


def _large(config: MethodConfig) -> Mapping[str, Any]:
    """Whole numbers far above their defaults."""
    defaults = {name: field.default for name, field in type(config).model_fields.items()}
    return {
        name: value
        for name, value in config
        if isinstance(value, int) and isinstance(defaults[name], int) and value >= _USUAL * defaults[name] > 0
    }
