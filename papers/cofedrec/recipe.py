"""CoFedRec's evidence: table 2 with a paired test, the two schedules, other datasets, plug-ins, noise and sweeps.

    python -m papers.cofedrec.recipe                  # run what is missing, in order (CONFED_DATA or a download)
    python -m papers.cofedrec.recipe --only table-2   # one part; parts can run side by side
    python -m papers.cofedrec.recipe --list           # the cells, and which are done
    python -m papers.cofedrec.tables                  # write the tables into docs/cofedrec.md
    python -m papers.cofedrec.figures                 # the pictures

results.jsonl has a line for every cell. published.toml holds the paper's figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from papers.cells import Cell, run_parts

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
SEEDS = (0, 1, 2)
MORE_SEEDS = tuple(range(3, 10))
"""Of the whole method, whose seeds differ much."""
PROTOCOLS = ("paper", "strict")

VARIANTS: dict[str, dict[str, Any]] = {
    "origin, 1 epoch": {"variant": "origin", "local_epochs": 1},
    "origin": {"variant": "origin"},
    "user-p": {"variant": "user-p"},
    "item-s": {"variant": "item-s"},
    "item-sc": {"variant": "item-sc"},
    "full": {},
}
BACKBONES = ("fedmf", "fedncf")
NOISE = (0.1, 0.2, 0.3, 0.4)
SATURATING = {"reproduction": {"saturating_bce": True}}
WEIGHTS = (0.001, 0.01, 0.05, 0.1, 0.3)
OURS = 0.01
"""Chosen by validation: the default on ml-100k."""
PRINTED = {"ml-100k": {"contrast": 0.005}}
"""The paper's own setting, with which every cell is run that does not say another, where it is not our default."""
CLUSTERS = (10, 20, 45, 60, 100, 150)


def _cell(
    variant: str,
    options: Mapping[str, Any],
    *,
    dataset: str = "ml-100k",
    protocol: str = "paper",
    seed: int = 0,
    rounds: int = 100,
) -> Cell:
    chosen = {**PRINTED.get(dataset, {}), **options}
    return Cell("cofedrec", dataset, protocol, seed, rounds, variant, chosen, detailed=True)


def table_2() -> list[Cell]:
    return [
        _cell(variant, options, protocol=protocol, seed=seed)
        for seed in SEEDS
        for protocol in PROTOCOLS
        for variant, options in VARIANTS.items()
    ]


def spread() -> list[Cell]:
    """The whole method with more seeds, and with the published code's loss: how far a run is luck."""
    return [
        *(_cell("full, saturating", SATURATING, seed=seed) for seed in SEEDS),
        *(_cell("full", {}, seed=seed) for seed in MORE_SEEDS),
    ]


def schedules() -> list[Cell]:
    """Both schedules on three seeds and few rounds, and the exact one on a whole run (its other half is in table 2)."""
    return [
        *(
            _cell(f"{name}, 20 rounds", {"schedule": name}, seed=seed, rounds=20)
            for seed in SEEDS
            for name in ("once-per-round", "every-step")
        ),
        _cell("every-step", {"schedule": "every-step"}),
    ]


def printed_form() -> list[Cell]:
    """The contrastive term as Eq. 8 prints it, with the printed weight and with a smaller one."""
    return [
        _cell("supcon paper", {"supcon": "paper"}),
        _cell("supcon paper, contrast 0.0001", {"supcon": "paper", "contrast": 0.0001}),
    ]


def datasets() -> list[Cell]:
    """Table 1's row, and table 9 beside it: every cell ranks all items as well. Two of them for about an hour."""
    return [
        *(_cell("full", {}, dataset="filmtrust", protocol=protocol) for protocol in PROTOCOLS),
        *(Cell("popularity", "filmtrust", protocol, 0) for protocol in PROTOCOLS),
        _cell("full, 24 rounds", {}, dataset="ml-1m", rounds=24),
        _cell("full, 40 rounds", {}, dataset="lastfm-2k", rounds=40),
    ]


def plug_ins() -> list[Cell]:
    """Table 3, beside a control with the same learning-rate rule and views, but no plug-in."""
    return [
        _cell(f"{backbone} {name}", {"backbone": backbone, **options})
        for backbone in BACKBONES
        for name, options in (("control", {"variant": "origin"}), ("full", {}))
    ]


def noise() -> list[Cell]:
    """Table 4, for CoFedRec and its backbone, with the published code's loss. CoFedRec's ratio 0 is in `spread`.

    In logit space tables that clients keep do not survive labels that contradict each other round after round: with
    ratio 0.1 a client's scores pass 1e9 in round 89. Where a saturated error has no gradient, they stay finite.
    """
    origin = {"variant": "origin", **SATURATING}
    return [
        _cell("origin, saturating", origin),
        *(
            _cell(f"{name}, noise {ratio}", {**options, "virtual_ratio": ratio})
            for ratio in NOISE
            for name, options in (("full", SATURATING), ("origin", origin))
        ),
    ]


def weights() -> list[Cell]:
    """Table 8. The paper's choice, 0.005, is in table 2; ours is run with more seeds, and under `strict`."""
    return [
        *(_cell(f"contrast {weight}", {"contrast": weight}) for weight in WEIGHTS),
        *(_cell(f"contrast {OURS}", {"contrast": OURS}, seed=seed) for seed in SEEDS[1:]),
        _cell(f"contrast {OURS}", {"contrast": OURS}, protocol="strict"),
    ]


def clusters() -> list[Cell]:
    """Figure 4. The default, 30, is in table 2."""
    return [_cell(f"clusters {number}", {"clusters": number}) for number in CLUSTERS]


PARTS = {
    "table-2": table_2,
    "spread": spread,
    "schedules": schedules,
    "printed-form": printed_form,
    "datasets": datasets,
    "plug-ins": plug_ins,
    "noise": noise,
    "weights": weights,
    "clusters": clusters,
}


def cells() -> list[Cell]:
    return [cell for part in PARTS.values() for cell in part()]


if __name__ == "__main__":
    run_parts("papers.cofedrec.recipe", __doc__, PARTS, RESULTS)
