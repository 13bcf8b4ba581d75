"""One writer at a time: a lock on a folder, which ends with its process, whatever ends that."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from confed.errors import ConfedError
from confed.files import unwritable_said

_LOCK, _HOLDER = ".lock", ".lock-holder.json"
LOCK_FILES = frozenset({_LOCK, _HOLDER})
"""What a lock leaves in its folder."""


@contextmanager
def locked(
    folder: Path,
    what: str,
    *,
    wait: float = 0.0,
    waiting: Callable[[str], None] | None = None,
    remedy: str = "",
) -> Iterator[None]:
    """While inside, nobody else is. Whoever comes meanwhile is told who is there; if it may wait so many seconds,
    `waiting` hears of it first. `remedy` is for those who cannot write there.
    """
    lock = FileLock(folder / _LOCK)
    try:
        with unwritable_said(folder, remedy):
            _acquire(lock, folder, what, wait, waiting)
    except Timeout:
        raise ConfedError(f"{_in_use(folder, what)}; wait for it to end, or end it") from None
    try:
        with suppress(OSError):  # the lock holds without it
            (folder / _HOLDER).write_text(json.dumps(_self()), encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            (folder / _HOLDER).unlink(missing_ok=True)
        lock.release()


def _acquire(lock: BaseFileLock, folder: Path, what: str, wait: float, waiting: Callable[[str], None] | None) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise
        if waiting:
            waiting(f"{_in_use(folder, what)}: waiting for it")
        lock.acquire(timeout=wait)


def _in_use(folder: Path, what: str) -> str:
    return f"{folder}: {what} is in use by {_holder(folder)}"


def _self() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"process": os.getpid(), "host": socket.gethostname(), "since": since}


def holder(folder: Path) -> str:
    """What whoever holds the folder's lock, or held it last, said of itself; nothing, if nobody did."""
    try:
        return (folder / _HOLDER).read_text("utf-8")
    except OSError:
        return ""


def _holder(folder: Path) -> str:
    """In words; whoever has just taken it may not have said who it is."""
    try:
        told = json.loads(holder(folder))
        return f"process {told['process']} on {told['host']} since {told['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
