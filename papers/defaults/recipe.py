"""How fast items should be stepped on data that nobody tuned for: a grid of rates, and what the default makes of it.

    python -m papers.defaults.recipe                # run what is missing, in order (CONFED_DATA)
    python -m papers.defaults.recipe --only after   # one part; parts can run side by side
    python -m papers.defaults.recipe --list         # the cells, and which are done
    python -m papers.defaults.tables                # write the tables into docs/defaults.md

results.jsonl has a line for every cell: `strict`, seed 0, 30 rounds. Files that are in no catalogue are named as they
lie below CONFED_DATA, and are told by their content.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from confed.data.sources import data_dir
from confed.methods.rates import PAPERS
from confed.methods.registry import method_named
from papers.cells import Cell, run_parts

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
ROUNDS = 30

NAMED = ("ml-100k", "filmtrust", "douban-book", "lastfm-2k", "lastfm-2k-listens", "amazon-video", "ml-1m")
MUSIC, VIDEO = "douban/interactions_music.csv.gz", "amazon-cdrib-game-video/interactions_video.csv.gz"
PHONE = "amazon-disencdr-phone-elec/interactions_phone.csv.gz"
FILES: dict[str, tuple[int, str]] = {
    MUSIC: (5, "f0720ef3227334b3ef391f01e354755ab0285c556986342c8124a3098c1f8ed3"),
    PHONE: (5, "39346d9a12cadaee5bc26c01e05f5505a1b56c9398910f396bd2a036bb2d57de"),
    VIDEO: (10, "dd590539e8c8f543b182ba5fa622ecfdb452e631ca1935dc6048c6f485abba0d"),
}
"""Single domains of pairs: the fewest interactions of a user who counts, and the hash of the content."""
SHAPES = (
    "synthetic:users=200,items=300,interactions_per_user=12",
    "synthetic:users=1000,items=500,interactions_per_user=60,skew=0",
    "synthetic:users=400,items=6000,interactions_per_user=150",
    "synthetic:users=2500,items=9000,interactions_per_user=60,skew=1.5",
    "synthetic:users=5000,items=1000,interactions_per_user=15,skew=1.5",
    "synthetic:users=6000,items=8000,interactions_per_user=12",
)
"""Few and many users, small and large catalogues, short and long histories, all items alike and a few that all have."""
DATASETS = (*SHAPES, *NAMED, *FILES)
SKEWED = "synthetic:users=300,items=2000,interactions_per_user=12,skew=1.5"
OTHERS = {"popularity": None, "fedmf": ROUNDS, "fedncf": ROUNDS, "fedrap": ROUNDS, "fed3cr": ROUNDS}
"""Their rounds there."""
FACTS: dict[str, dict[str, float]] = {
    SHAPES[0]: {"items": 282.0, "rows": 54.89, "holders": 0.115},
    SHAPES[1]: {"items": 500.0, "rows": 175.3, "holders": 0.1295},
    SHAPES[2]: {"items": 5656.0, "rows": 232.2, "holders": 0.1163},
    SHAPES[3]: {"items": 7953.0, "rows": 174.8, "holders": 0.1884},
    SHAPES[4]: {"items": 981.0, "rows": 62.6, "holders": 0.1482},
    SHAPES[5]: {"items": 6511.0, "rows": 48.87, "holders": 0.0335},
    "ml-100k": {"items": 1682.0, "rows": 211.1, "holders": 0.1755},
    "filmtrust": {"items": 2059.0, "rows": 122.6, "holders": 0.3671},
    "douban-book": {"items": 6777.0, "rows": 147.0, "holders": 0.01824},
    "lastfm-2k": {"items": 12371.0, "rows": 108.4, "holders": 0.01736},
    "lastfm-2k-listens": {"items": 17612.0, "rows": 237.5, "holders": 0.04415},
    "amazon-video": {"items": 11830.0, "rows": 28.87, "holders": 0.006185},
    "ml-1m": {"items": 3706.0, "rows": 226.0, "holders": 0.1337},
    MUSIC: {"items": 5567.0, "rows": 133.0, "holders": 0.01716},
    PHONE: {"items": 18462.0, "rows": 67.67, "holders": 0.00391},
    VIDEO: {"items": 8530.0, "rows": 76.41, "holders": 0.005704},
}
"""From which the rule has its η: whether a run of it is wanted is known before there is one."""
LEARNED = ("fedmf", "pfedrec", "cofedrec")
WHOLE = (0.8, 2.5, 8.0, 25.0, 250.0)
TRIED: dict[str, dict[str, tuple[float, ...]]] = {
    "fedmf": {
        **dict.fromkeys((*SHAPES[:5], *NAMED[:3]), WHOLE),
        **dict.fromkeys(("lastfm-2k", "lastfm-2k-listens"), (25.0,)),
        "amazon-video": (8.0, 25.0),
        MUSIC: WHOLE[1:],
        VIDEO: (250.0,),
    },
    "pfedrec": {
        SHAPES[0]: (250.0,),
        SHAPES[1]: (250.0,),
        SHAPES[2]: (25.0, 250.0),
        SHAPES[3]: (250.0,),
        SHAPES[4]: (0.8, 2.5, 250.0),
        "ml-100k": (25.0, 250.0),
        "filmtrust": WHOLE,
    },
    "cofedrec": {SHAPES[0]: (8.0,), "filmtrust": (24.0,)},
}
"""Rates beside the papers', where there was time for them."""


def _cell(
    method: str, dataset: str, variant: str = "", factor: float | None = None, rounds: int | None = ROUNDS
) -> Cell:
    fewest, content_hash = FILES.get(dataset, (None, None))
    options = {} if factor is None else {"item_rate_factor": factor}
    settings = {} if fewest is None else {"min_interactions": fewest}
    return Cell(method, dataset, "strict", 0, rounds, variant, options, settings, content_hash=content_hash)


def reference() -> list[Cell]:
    """What anything learned has to pass, and a closed form of all data in one place."""
    return [_cell(method, dataset, rounds=None) for dataset in DATASETS for method in ("popularity", "ease")]


def before() -> list[Cell]:
    return [_at(PAPERS, method, dataset) for method in LEARNED for dataset in DATASETS]


def after() -> list[Cell]:
    """The default; where that is still the papers' η, what the rule would say. Not what `before` has already."""
    done = before()
    cells = [after_cell(method, dataset) for method in LEARNED for dataset in DATASETS]
    return [cell for cell in cells if cell not in done]


def after_cell(method: str, dataset: str) -> Cell:
    chosen = method_named(method)
    settled: Any = chosen.settled(chosen.config(None, {}), FACTS[dataset])
    factor = settled.item_rate_factor
    if factor == PAPERS:
        return _at(PAPERS, method, dataset)
    return _cell(method, dataset, "rule", factor) if dataset in chosen.defaults else _cell(method, dataset)


def grid() -> list[Cell]:
    return [
        _at(factor, method, dataset)
        for method, tried in TRIED.items()
        for dataset, factors in tried.items()
        for factor in factors
    ]


def _at(factor: float, method: str, dataset: str) -> Cell:
    return _cell(method, dataset, f"eta {factor:g}", factor)


def others() -> list[Cell]:
    """Methods with rates of another kind, beside FedMF, where few people have few items and popularity is strong."""
    cells = [Cell(method, SKEWED, "strict", 0, rounds) for method, rounds in OTHERS.items()]
    tenths = {"fedmf": {"item_rate_factor": 10.0}, "fedrap": {"item_rate": 100.0}}
    return cells + [Cell(method, SKEWED, "strict", 0, ROUNDS, "a tenth", said) for method, said in tenths.items()]


PARTS = {"reference": reference, "before": before, "after": after, "grid": grid, "others": others}


def cells() -> list[Cell]:
    return [cell for part in PARTS.values() for cell in part()]


if __name__ == "__main__":
    with contextlib.chdir(data_dir() or Path.cwd()):
        run_parts("papers.defaults.recipe", __doc__, PARTS, RESULTS)
