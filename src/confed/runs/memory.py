"""Peak memory of a run, not of the process: several runs may follow each other in one."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def reset_peak() -> None:
    """Start the peak anew, where the system can (Linux); elsewhere it stays that of the process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_rss_mb() -> float:
    """The largest resident memory since `reset_peak`, in MiB."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
