"""Fed3CR's evidence: a search for what the paper does not print, the main table, ablations, alternatives, sweeps.

    python -m papers.fed3cr.recipe                # run what is missing, in order (CONFED_DATA or a download)
    python -m papers.fed3cr.recipe --only main    # one part; parts can run side by side
    python -m papers.fed3cr.recipe --list         # the cells, and which are done
    python -m papers.fed3cr.tables                # write the tables into docs/fed3cr.md
    python -m papers.fed3cr.figures               # the pictures

results.jsonl has a line for every cell. published.toml holds the paper's figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confed.methods.fed3cr import VARIANTS
from papers.cells import Cell, run_parts

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
SEEDS = (0, 1)
PROTOCOLS = ("paper", "strict")
SEARCH_ROUNDS = 6
"""Rounds of a trial: enough to see what diverges and what stands still."""

MAIN = ("pfedrec", "fedrap", "fed3cr", "local-only", "scalar", "popularity", "ease")
STRICT_VARIANTS = ("C0", "C1", "C4", "full")
BACKBONES = ("fedmf", "fedncf", "pfedrec", "fedrap")
WEIGHTS = (0.1, 0.3, 0.5, 0.7, 1.0)

CENTRE: dict[str, Any] = {
    "learning_rate": 1e-3,
    "item_rate": 100.0,
    "init_deviation": 0.1,
    "own_deviation": 0.1,
    "user_deviation": 0.3,
    "alpha": 1.0,
    "residual": False,
    "consistency_weight": 0.5,
    "complementarity_weight": 0.5,
    "temperature": 1.0,
}
"""Where the search begins. Each trial changes one thing, or two that belong together."""
CHANGES: dict[str, dict[str, Any]] = {
    "the centre": {},
    "alpha 10": {"alpha": 10.0},
    "alpha 4": {"alpha": 4.0},
    "alpha 1, W = I + F": {"residual": True},
    "beta 0.1": {"consistency_weight": 0.1, "complementarity_weight": 0.1},
    "beta 1": {"consistency_weight": 1.0, "complementarity_weight": 1.0},
    "item rate 30": {"item_rate": 30.0},
    "item rate 300": {"item_rate": 300.0},
    "rate 1e-2": {"learning_rate": 1e-2},
    "rate 1e-4": {"learning_rate": 1e-4},
    "tables with deviation 1": {"init_deviation": 1.0, "own_deviation": 1.0},
    "user vector 0.1": {"user_deviation": 0.1},
    "user vector 1, item rate 30": {"user_deviation": 1.0, "item_rate": 30.0},
    "tau 0.2": {"temperature": 0.2},
}
TRIALS = {name: CENTRE | change for name, change in CHANGES.items()}
FEDRAP: dict[str, dict[str, Any]] = {
    "tables with deviation 1": {"init_deviation": 1.0},
    "tables with deviation 1, lambda 0.1": {"init_deviation": 1.0, "independence": 0.1},
    "lambda 0.1": {"independence": 0.1},
    "item rate 100": {"item_rate": 100.0},
}


def _cell(
    variant: str,
    options: Mapping[str, Any],
    *,
    dataset: str = "ml-100k",
    protocol: str = "paper",
    seed: int = 0,
    rounds: int = 40,
    method: str = "fed3cr",
    detailed: bool = False,
) -> Cell:
    return Cell(method, dataset, protocol, seed, rounds, variant, options, detailed=detailed)


def search() -> list[Cell]:
    return [
        _cell(f"trial {name}", options, protocol=protocol, rounds=SEARCH_ROUNDS)
        for name, options in TRIALS.items()
        for protocol in PROTOCOLS
    ]


def main_table() -> list[Cell]:
    """100 rounds of everything that has rounds; one seed first, so that a stopped run has a whole table."""
    return [Cell(method, "ml-100k", protocol, seed) for seed in SEEDS for protocol in PROTOCOLS for method in MAIN]


def fedrap() -> list[Cell]:
    """FedRAP from the published code's start, with its λ as well; and with Fed3CR's rate of the tables."""
    return [_cell(name, options, method="fedrap", rounds=100) for name, options in FEDRAP.items()]


def ablations() -> list[Cell]:
    """Table III: all variants under `paper`, some under `strict`."""
    return [
        _cell(variant, {"variant": variant}, protocol=protocol)
        for protocol in PROTOCOLS
        for variant in VARIANTS
        if protocol == "paper" or variant in STRICT_VARIANTS
    ]


def transfers() -> list[Cell]:
    """Table IV: a learned matrix for everybody in place of ACE, without the two terms."""
    return [_cell(f"transfer {kind}", {"variant": "C1", "ace": kind}) for kind in ("consensus", "unified")]


def datasets() -> list[Cell]:
    """Douban-Book whole, two others for time and memory; ml-1m for an hour, with its curve."""
    return [
        *(_cell("", {}, dataset="douban-book", method=m, rounds=30) for m in ("fed3cr", "fedrap", "pfedrec")),
        _cell("3 rounds", {}, dataset="lastfm-2k-listens", rounds=3),
        _cell("20 rounds", {}, dataset="ml-1m", rounds=20, detailed=True),
    ]


def plug_ins() -> list[Cell]:
    """Figure 8: every method beside itself with Fed3CR plugged in."""
    return [
        *(_cell("30 rounds", {}, method=backbone, rounds=30) for backbone in BACKBONES),
        *(_cell(f"on {backbone}", {"backbone": backbone}, rounds=30) for backbone in BACKBONES if backbone != "fedmf"),
        _cell("30 rounds", {}, rounds=30),
    ]


def constraints() -> list[Cell]:
    """Figure 4: other terms in place of L_a and L_o, each on top of ACE alone, which is there for as many rounds."""
    alone = _cell("C1, 30 rounds", {"variant": "C1"}, rounds=30)
    alike = [_cell(f"C1 and {term}", {"variant": "C1", "consistency": term}, rounds=30) for term in ("La", "Ls", "Lc")]
    unlike = [
        _cell(f"C1 and {term}", {"variant": "C1", "complementarity": term}, rounds=30) for term in ("Lo", "L2", "Lm")
    ]
    return [alone, *alike, *unlike]


def sensitivity() -> list[Cell]:
    """Figure 9: β_a, β_o, layers. The defaults are in `plug_ins`, 30 rounds."""
    return [
        *(_cell(f"beta_a {weight}", {"consistency_weight": weight}, rounds=30) for weight in WEIGHTS if weight != 0.1),
        *(
            _cell(f"beta_o {weight}", {"complementarity_weight": weight}, rounds=30)
            for weight in WEIGHTS
            if weight != 0.1
        ),
        *(_cell(f"layers {layers}", {"layers": layers}, rounds=30) for layers in (2, 4)),
    ]


PARTS = {
    "search": search,
    "main": main_table,
    "fedrap": fedrap,
    "ablations": ablations,
    "transfers": transfers,
    "datasets": datasets,
    "plug-ins": plug_ins,
    "constraints": constraints,
    "sensitivity": sensitivity,
}


def cells() -> list[Cell]:
    return [cell for part in PARTS.values() for cell in part()]


if __name__ == "__main__":
    run_parts("papers.fed3cr.recipe", __doc__, PARTS, RESULTS)
