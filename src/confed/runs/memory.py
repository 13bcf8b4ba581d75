"""Peak memory of a run, not of the process: several runs may follow each other in one."""

from __future__ import annotations

from pathlib import Path

import psutil

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
