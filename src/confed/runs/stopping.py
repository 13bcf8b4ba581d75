"""Ctrl-C: the first one lets the round end and has it saved, the second one stops at once.

A run is asked to stop by a file in its folder, which the loop looks for after every round, wherever that loop is.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from confed.runs.folder import RunFolder

_SAID = b"\nstopping after this round, which will be saved; Ctrl-C once more stops at once\n"


@contextmanager
def patient_ctrl_c(folder: RunFolder) -> Iterator[None]:
    """While a run goes on. Where signals are somebody else's, in a thread that is not the main one, nothing changes."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        folder.ask_to_stop()
        os.write(2, _SAID)  # whatever the signal interrupted may be printing itself

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
