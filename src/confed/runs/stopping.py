"""Ctrl-C: the first one lets the round end and has it saved, the second one stops at once.

A run is asked to stop by a file in its folder, which the loop looks for after every round, wherever that loop is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from confed.data.sources import announce
from confed.runs.folder import RunFolder


@contextmanager
def patient_ctrl_c(folder: RunFolder) -> Iterator[None]:
    """While a run goes on. Where signals are somebody else's, in a thread that is not the main one, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        folder.ask_to_stop()
        announce("stopping after this round, which will be saved; Ctrl-C once more stops at once")

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        folder.go_on()
