"""Published figures, to be printed beside ours under the `paper` protocol."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Published:
    """One cell of a published table, in percent."""

    source: str
    ranking: str
    hr: float
    ndcg: float


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(resources.files("confed.methods").joinpath("published.toml").read_text("utf-8"))


def published(method: str, dataset: str) -> list[Published]:
    """Every published figure of `method` on `dataset`, in the order of the file."""
    found = []
    for table in _tables().values():
        cell = table["figures"].get(dataset, {}).get(method)
        if cell:
            found.append(Published(table["source"], table["ranking"], *cell))
    return found
