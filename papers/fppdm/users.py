"""What the data says of every user, for tables of some of them: python -m papers.fppdm.users.

How many items of a domain a user trains with (the same for every seed: two are held out, whichever they are), and
whose test item nobody trains on. Needs the data (CONFED_DATA) and no model. Users are in the order in which results
keep their ranks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confed.data.domain_split import split_domains
from confed.data.registry import load_domains
from confed.data.split import Cut
from confed.protocol import WARM
from papers.fppdm.recipe import DATASETS, LARGER, SEEDS

FILE = Path(__file__).parent / "data" / "users.json"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Users:
    """The users of a domain."""

    items: list[int]
    """How many each trains with."""
    untrained: dict[int, list[int]]
    """By seed, the users whose test item nobody trains on."""

    def trained(self, seed: int) -> Mask:
        """Those whose test item somebody trains on."""
        mask = np.ones(len(self.items), dtype=bool)
        mask[self.untrained[seed]] = False
        return mask

    def thirds(self) -> list[Mask]:
        """The users with few, some and many items, as nearly equal in number as ties allow."""
        bounds = np.quantile(self.items, (1 / 3, 2 / 3))
        third = np.searchsorted(bounds, self.items)
        return [third == which for which in range(3)]


def described(dataset: str) -> dict[str, Users]:
    """The users of every domain."""
    data = load_domains(dataset)
    cuts = {seed: split_domains(data, WARM, seed).parts for seed in SEEDS}
    return {
        name: Users(
            items=first.training.positives.lengths.tolist(),
            untrained={seed: _untrained(cut[name]) for seed, cut in cuts.items()},
        )
        for name, first in cuts[SEEDS[0]].items()
    }


def _untrained(part: Cut) -> list[int]:
    found: list[int] = np.flatnonzero(np.isin(part.tested, part.training.positives.values, invert=True)).tolist()
    return found


def kept() -> dict[str, dict[str, Users]]:
    """By dataset and domain."""

    def users(of: dict[str, Any]) -> Users:
        return Users(of["items"], {int(seed): places for seed, places in of["untrained"].items()})

    found = json.loads(FILE.read_text("utf-8"))
    return {dataset: {name: users(of) for name, of in domains.items()} for dataset, domains in found.items()}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    found = {dataset: {name: vars(of) for name, of in described(dataset).items()} for dataset in (*DATASETS, LARGER)}
    FILE.write_text(json.dumps(found) + "\n", encoding="utf-8")
