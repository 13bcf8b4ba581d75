"""How many items of a domain a user trains with, for tables by activity: python -m papers.fppdm.activity.

Needs the data (CONFED_DATA) and no model. The counts are the same for every seed: two items of every user are held out
in each domain, whichever they are. Users are in the order in which results keep their ranks.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from confed.data.domain_split import DomainSplit
from confed.runs.runner import Experiment
from confed.runs.settings import resolve
from papers.fppdm.recipe import DATASETS

FILE = Path(__file__).parent / "data" / "activity.json"


def counted(dataset: str) -> dict[str, list[int]]:
    """Of every domain, the training items of each user."""
    cut = Experiment.prepare(resolve("popularity", dataset, protocol="warm")).cut
    assert isinstance(cut, DomainSplit)
    return {name: part.training.positives.lengths.tolist() for name, part in cut.parts.items()}


def counts_of_users() -> dict[str, dict[str, list[int]]]:
    """By dataset and domain, as kept."""
    found: dict[str, dict[str, list[int]]] = json.loads(FILE.read_text("utf-8"))
    return found


def thirds(counts: list[int]) -> list[NDArray[np.bool_]]:
    """The users with few, some and many items, as nearly equal in number as ties allow."""
    bounds = np.quantile(counts, (1 / 3, 2 / 3))
    third = np.searchsorted(bounds, counts)
    return [third == which for which in range(3)]


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps({dataset: counted(dataset) for dataset in DATASETS}) + "\n", encoding="utf-8")
