"""How fast item tables should be stepped on data that nobody tuned for: a grid of rates, and what the default makes of it.

    python -m papers.defaults.recipe                # run what is missing, in order (CONFED_DATA)
    python -m papers.defaults.recipe --only fedmf   # one part; parts can run side by side
    python -m papers.defaults.recipe --list         # the cells, and which are done
    python -m papers.defaults.tables                # write the tables into docs/defaults.md

results.jsonl has a line for every cell: `strict`, seed 0, 30 rounds. Files that are in no catalogue are named as they
lie below CONFED_DATA, and are told by their content.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from confed.data.sources import data_dir
from papers.cells import Cell, run_parts

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
ROUNDS = 30
PAPERS = 80.0
"""η of the published code, on every dataset."""
FACTORS = (0.8, 2.5, 8.0, 25.0, PAPERS, 250.0)

NAMED = ("ml-100k", "filmtrust", "douban-book", "lastfm-2k", "lastfm-2k-listens", "amazon-video", "ml-1m")
FILES: dict[str, tuple[int, str]] = {
    "douban/interactions_music.csv.gz": (5, ""),
    "amazon-disencdr-phone-elec/interactions_phone.csv.gz": (5, ""),
    "amazon-cdrib-game-video/interactions_video.csv.gz": (10, ""),
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


def _cell(method: str, dataset: str, rounds: int | None = ROUNDS, factor: float | None = None) -> Cell:
    fewest = {"min_interactions": FILES[dataset][0]} if dataset in FILES else {}
    variant = "" if factor is None else f"eta {factor:g}"
    options = {} if factor is None else {"item_rate_factor": factor}
    return Cell(method, dataset, "strict", 0, rounds, variant, options, settings=fewest)


def reference() -> list[Cell]:
    """What anything learned has to pass, and a closed form of all data in one place."""
    return [_cell(method, dataset, rounds=None) for dataset in DATASETS for method in ("popularity", "ease")]


def grid(method: str) -> list[Cell]:
    return [_cell(method, dataset, factor=factor) for dataset in DATASETS for factor in FACTORS]


PARTS = {
    "reference": reference,
    "fedmf": lambda: grid("fedmf"),
    "pfedrec": lambda: grid("pfedrec"),
}


def cells() -> list[Cell]:
    return [cell for part in PARTS.values() for cell in part()]


if __name__ == "__main__":
    with contextlib.chdir(data_dir() or Path.cwd()):
        run_parts("papers.defaults.recipe", __doc__, PARTS, RESULTS)
