"""What does not fit into the machine, said before the machine says it."""

from __future__ import annotations

import psutil

from confed.errors import ConfedError


def require_room(what: str, nbytes: int, remedy: str) -> None:
    """`what` takes so many bytes."""
    available = psutil.virtual_memory().total
    if nbytes > available:
        raise ConfedError(
            f"{what} take {nbytes / 1e9:,.1f} GB and this machine has {available / 1e9:,.1f} GB: {remedy}"
        )
