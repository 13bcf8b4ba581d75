"""What somebody may say about how a file or a frame is read. Whatever is not said is found out."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import TypedDict  # pydantic understands that of `typing` from Python 3.12 on

from confed.errors import ConfedError

COLUMNS = ("user", "item", "rating", "timestamp", "title")
"""What is the name of a column."""


class Reading(TypedDict, total=False):
    """By the names that `confed.run` and `confed.load_dataset` have for it."""

    user: str
    item: str
    rating: str
    timestamp: str
    title: str
    date_order: str
    format: str
    separator: str
    header: bool
    encoding: str
    time: str


READING = tuple(Reading.__annotations__)


def refuse(options: Iterable[str], name: str, kind: str) -> None:
    """Raise if somebody says how to read what is not a file or a frame of the user's own."""
    said = [f"--{one}-column" if one in COLUMNS else f"--{one.replace('_', '-')}" for one in options]
    if said:
        raise ConfedError(
            f"{name}: {kind} takes no options, got {', '.join(said)}: leave out what says how to read a file or a frame"
        )
