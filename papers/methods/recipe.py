"""Every method across devices, and those with the data in one place, side by side, with the settings that papers print.

    python -m papers.methods.recipe                 # run what is missing (CONFED_DATA)
    python -m papers.methods.recipe --only main     # one part; parts can run side by side
    python -m papers.methods.recipe --list          # the cells, and which are done
    python -m papers.methods.tables                 # write the tables into docs/comparison.md and README.md

Nothing is tuned. `cost` is for a machine with nothing else to do: three rounds of every method, for its seconds and its
memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.cells import Cell, run_parts
from papers.cofedrec import recipe as cofedrec
from papers.elsewhere import Recipe, measured
from papers.fed3cr import recipe as fed3cr
from papers.foundation import recipe as foundation

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
SEEDS = (0, 1, 2)
PROTOCOLS = ("paper", "strict")

CENTRAL = ("popularity", "ease", "ials", "mf", "neumf", "lightgcn", "pmlam")
DEVICES = (
    "fcf",
    "fedmf",
    "federank",
    "fedncf",
    "fedpergnn",
    "fedrecon",
    "metamf",
    "fedfast",
    "perfedrec",
    "pfedrec",
    "gpfedrec",
    "fedrap",
    "fed3cr",
    "cofedrec",
)
METHODS = (*CENTRAL, *DEVICES)
CONTROLS = ("scalar", "local-only")
"""They learn nothing together."""
ELSEWHERE: tuple[Recipe, ...] = (foundation, cofedrec, fed3cr)
"""Who has run some of the cells already."""
OPTIONS: Mapping[str, Mapping[str, Any]] = {"fedrecon": {"reinit_every": 2}}
"""As CoFedRec's authors ran it, where that is not the method's own default."""
ROUNDS = {"local-only": 50}
PATIENCE = {"mf": 20, "neumf": 15, "lightgcn": 100, "pmlam": 15}
"""Evaluations without a gain after which the long central runs end.

With 15, LightGCN on MovieLens-100K under `strict` was best in epoch 32 with seed 2, and in 389, 15 points of HR@10
higher, with seed 0.
"""
COST = "cost"
COST_ROUNDS = 3
_ALIKE = {"common_start": True}
_FREE = {"learning_rate": 0.001, "weight_decay": 0.0}
_OPEN = {"gradient_clip": 0.0, "noise_scale": 0.0, "pseudo_items": 0}
EXPLAINED: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "ml-100k": {
        "fedfast": {"vectors begin alike": _ALIKE, "vectors begin alike, lr 5": {**_ALIKE, "learning_rate": 5.0}},
        "perfedrec": {
            "vectors begin alike": _ALIKE,
            "lr 0.1": {"learning_rate": 0.1},
            "lr 0.1, everybody takes part": {"learning_rate": 0.1, "most": 1000},
            "lr 1, everybody takes part, vectors begin alike": {**_ALIKE, "learning_rate": 1.0, "most": 1000},
        },
        "fedpergnn": {"nothing is hidden": _OPEN, "nothing is hidden, lr 1": {**_OPEN, "learning_rate": 1.0}},
        "fedrecon": {
            "the server steps 20 times as far": {"server_rate": 20.0},
            "the server steps 20 times as far, lr 5": {"server_rate": 20.0, "learning_rate": 5.0},
            "the server steps 20 times as far, lr 5, 5 epochs of reconstruction": {
                "server_rate": 20.0,
                "learning_rate": 5.0,
                "reconstruction_epochs": 5,
            },
        },
        "metamf": {
            "lr 0.001, no decay": _FREE,
            "lr 0.001, no decay, vectors begin a tenth as long": {**_FREE, "init_deviation": 0.1},
        },
    },
    "filmtrust": {
        "fedfast": {"vectors begin alike, lr 5": {**_ALIKE, "learning_rate": 5.0}},
        "perfedrec": {"lr 0.1, everybody takes part": {"learning_rate": 0.1, "most": 2000}},
        "fedpergnn": {"nothing is hidden, lr 1": {**_OPEN, "learning_rate": 1.0}},
    },
}
"""By dataset, method and variant: options that change something, under `paper`, with the first seed."""


def cell(method: str, dataset: str, protocol: str, seed: int) -> Cell:
    settings = {"patience": PATIENCE[method]} if method in PATIENCE else {}
    return Cell(method, dataset, protocol, seed, ROUNDS.get(method), "", OPTIONS.get(method, {}), settings)


def main_cells() -> list[Cell]:
    """MovieLens-100K, seed by seed."""
    methods = (*METHODS, *CONTROLS)
    return [cell(method, "ml-100k", protocol, seed) for seed in SEEDS for method in methods for protocol in PROTOCOLS]


def other_cells() -> list[Cell]:
    """FilmTrust."""
    return [cell(method, "filmtrust", protocol, SEEDS[0]) for method in METHODS for protocol in PROTOCOLS]


def measured_elsewhere() -> dict[str, dict[str, Any]]:
    return measured([*main_cells(), *other_cells()], ELSEWHERE)


def cost_cells() -> list[Cell]:
    """Three rounds, under `strict`."""
    return [
        Cell(
            method,
            dataset,
            "strict",
            SEEDS[0],
            COST_ROUNDS if has_rounds(method) else None,
            COST,
            OPTIONS.get(method, {}),
            alone=True,
        )
        for dataset in ("ml-100k", "ml-1m")
        for method in METHODS
    ]


def has_rounds(method: str) -> bool:
    return method not in ("popularity", "ease")


def explaining_cells() -> list[Cell]:
    """Why figures lie below those that were printed."""
    return [
        Cell(method, dataset, "paper", SEEDS[0], variant=variant, options={**OPTIONS.get(method, {}), **options})
        for dataset, methods in EXPLAINED.items()
        for method, variants in methods.items()
        for variant, options in variants.items()
    ]


def cells() -> list[Cell]:
    return [cell for part in PARTS.values() for cell in part()]


PARTS = {"main": main_cells, "filmtrust": other_cells, "cost": cost_cells, "explaining": explaining_cells}


def selected(results: Sequence[Mapping[str, Any]], method: str, **wanted: Any) -> list[Mapping[str, Any]]:
    """The results of a method that have these facts."""
    return [r for r in results if r["method"] == method and all(r[name] == value for name, value in wanted.items())]


if __name__ == "__main__":
    run_parts("papers.methods.recipe", __doc__, PARTS, RESULTS, measured_elsewhere())
