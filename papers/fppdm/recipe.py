"""FPPDM's evidence: alone against federated on three seeds, the other baselines, ablation, sweeps, cold users.

    python -m papers.fppdm.recipe                # run what is missing, in order (CONFED_DATA holds the files)
    python -m papers.fppdm.recipe --only main    # one part; parts can run side by side
    python -m papers.fppdm.recipe --list         # the cells, and which are done
    python -m papers.fppdm.tables                # write the tables into docs/fppdm.md
    python -m papers.fppdm.figures               # the pictures

results.jsonl has a line for every cell. published.toml holds the paper's figures. A run stops after five evaluations
without a better mean of the domains' validation NDCG@10 (by default it is ten; five fit the machine), ETL, ETL-F and
ETL-FC after twenty; an evaluation is a round of five epochs for methods with a server, and five epochs for the others.
ETL has batches of 32 people: with its own 256, four batches of Douban, it stands at popularity after 200 epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sklearn.metrics import adjusted_rand_score

import confed
from confed.analysis.preferences import preferences
from confed.data.synthetic_domains import synthetic_domains_truth
from confed.methods.registry import method_named
from confed.models.compactness import CoClustering
from confed.models.distributions import unnamed
from confed.random import Stream
from papers.cells import Cell, run_parts

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
SEEDS = (0, 1, 2)
DATASETS = ("douban", "amazon-game-video")
PATIENCE = 5
MOST_ROUNDS = 30
SLOW = {"etl": (100, 20), "etl-f": (80, 20), "etl-fc": (80, 20)}
"""Evaluations and patience of methods that learn nothing but popularity for a long time (ETL-F for 15 rounds)."""
PEOPLE = {"domains": 3, "users": 400}
SYNTHETIC = f"synthetic:{','.join(f'{key}={value}' for key, value in PEOPLE.items())}"
"""Three domains of the same people, the first of them sparse; who belongs together is known."""

ALONE = {"variant": "alone"}
WIDE = {"dim": 128, "batch_size": 256}
"""What the paper says of all methods: width 128, batches of 256. ETL's three keep ETL's own width of 200, and PMLAM its
own batches of 5,000."""
MAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "LightGCN, alone": ("lightgcn", WIDE),
    "FPPDM, alone": ("fppdm", ALONE),
    "FedGNN": ("fedgnn-silo", {}),
    "FPPDM": ("fppdm", {}),
    "FPPDM++, alone": ("fppdm++", ALONE),
    "FPPDM++": ("fppdm++", {}),
}
PLANTED = {name: choice for name, choice in MAIN.items() if choice[0].startswith("fppdm")} | {
    "FPPDM, alignment 0.5": ("fppdm", {"alignment": 0.5}),
    "FPPDM++, alignment 0.5": ("fppdm++", {"alignment": 0.5}),
}
"""Also with ten times the paper's pull: at 0.05 only the server's distributions help the sparse domain."""
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "popularity": ("popularity", {}),
    "NeuMF, alone": ("neumf", WIDE),
    "PMLAM, alone": ("pmlam", {"dim": 128}),
    "FedMF": ("fedmf-silo", {}),
    "PriCDR": ("pricdr", {}),
    "PriCDR, readable": ("pricdr", {"column_epsilon": 64.0, "scale": "learned"}),
    "DOML": ("doml", {}),
    "ETL": ("etl", {"batch_size": 32}),
    "CDRIB": ("cdrib", {}),
    "MSDCR": ("msdcr", {"dim": 128}),
    "ETL-F": ("etl-f", {}),
    "ETL-FC": ("etl-fc", {}),
}
"""PriCDR as published has noise of 121 on rows of length 4, and logits of at most 1; the second has less and more."""
SCORES: dict[str, tuple[str, dict[str, Any]]] = {
    "FPPDM, dot product": ("fppdm", {"score": "dot"}),
    "FPPDM, distance and a bias": ("fppdm", {"score": "biased"}),
    "FPPDM, scaled distance": ("fppdm", {"score": "scaled"}),
    "FPPDM, scaled distance at length 1": ("fppdm", {"score": "normalised"}),
}
"""Why FPPDM stands below LightGCN: the same points, compared otherwise."""
COUPLINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "FPPDM++, coupling 0": ("fppdm++", {"coupling": 0.0}),
    "FPPDM++, coupling 1.7": ("fppdm++", {"coupling": 1.7}),
}
"""Indicators have a mean squared length of M/N, 15/256: with 1.7 they count as 0.1 would at length 1."""
ABLATION = ("B", "P")
CLUSTERS = (5, 10, 20)
WEIGHTS = (0.01, 0.02, 0.05, 0.07, 0.1, 0.5)
DEFAULT_WEIGHTS = {"alignment": 0.05, "clustering": 0.07}
GENTLE: dict[str, tuple[str, dict[str, Any]]] = {
    "FPPDM, alignment 0.02": ("fppdm", {"alignment": 0.02}),
    "alignment 0.02": ("fppdm++", {"alignment": 0.02}),
}
"""The pull that did best in figure 4, for every seed: whether it is the exchange that costs, or its weight."""
TRIED: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one layer": {"layers": 1},
    "two layers": {"layers": 2},
    "a fifth of the learning rate": {"learning_rate": 0.0002},
    "50 negatives": {"train_negatives": 50},
}
"""What might help the local model alone, which falls behind LightGCN; it is at its best within three rounds or so."""
COLD = {name: MAIN[name] for name in ("FPPDM, alone", "FPPDM", "FPPDM++")} | {"popularity": ("popularity", {})}
COLD_ROUNDS = 2
"""With everybody in it, a round of amazon-game-video is seven minutes of one core and more."""
ANSWERING = BASELINES | {name: MAIN[name] for name in ("LightGCN, alone", "FedGNN", "FPPDM, alone", "FPPDM", "FPPDM++")}
"""Whoever says something of a user who is new to a domain."""
LARGER = "amazon-cloth-sport"
LARGER_ROUNDS = 5
"""A minute and a half each."""
LARGER_SEEDS = (0, 1)
LONGER_ROUNDS = 15
"""One seed of them: whether the order of five rounds stays."""


def longer(name: str) -> str:
    return f"{name}, {LONGER_ROUNDS} rounds"


def _cell(
    name: str,
    method: str,
    options: Mapping[str, Any],
    dataset: str,
    *,
    seed: int = 0,
    protocol: str = "warm",
    rounds: int = MOST_ROUNDS,
    measure: Callable[[confed.Run], Mapping[str, Any]] | None = None,
) -> Cell:
    if method == "popularity":
        return Cell(method, dataset, protocol, seed, None, name, options, {}, detailed=True)
    rounds, patience = SLOW.get(method, (rounds, PATIENCE))
    epochs = 5 if method_named(method).kind == "central" else 1
    settings = {"patience": patience, "eval_every": epochs}
    return Cell(method, dataset, protocol, seed, rounds * epochs, name, options, settings, True, measure)


def main_table() -> list[Cell]:
    """Reproduced or refuted: FPPDM++ ≥ FPPDM ≥ one domain alone."""
    return _on_all_seeds(MAIN)


def baselines() -> list[Cell]:
    return [
        _cell(name, method, options, dataset) for dataset in DATASETS for name, (method, options) in BASELINES.items()
    ]


def scores() -> list[Cell]:
    """FPPDM with other scores; as printed it is in the main table."""
    return _on_all_seeds(SCORES)


def couplings() -> list[Cell]:
    """Whether η matters; 0.1 is in the main table."""
    return _on_all_seeds(COUPLINGS)


def _on_all_seeds(choices: Mapping[str, tuple[str, dict[str, Any]]]) -> list[Cell]:
    return [
        _cell(name, method, options, dataset, seed=seed)
        for seed in SEEDS
        for dataset in DATASETS
        for name, (method, options) in choices.items()
    ]


def ablation() -> list[Cell]:
    """Figure 3; FPPDM and FPPDM++ are in the main table."""
    return [_cell(f"FPPDM++ ({v})", "fppdm++", {"variant": v}, "amazon-game-video") for v in ABLATION]


def clusters() -> list[Cell]:
    """Table 4; M = 15 is in the main table."""
    return [_cell(f"M = {number}", "fppdm++", {"clusters": number}, "douban") for number in CLUSTERS]


def weights() -> list[Cell]:
    """Figure 4; the defaults are in the main table."""
    return [
        _cell(f"{option} {weight}", "fppdm++", {option: weight}, "douban")
        for option, default in DEFAULT_WEIGHTS.items()
        for weight in WEIGHTS
        if weight != default
    ]


def gentle() -> list[Cell]:
    """The weaker pull; FPPDM++'s first seed is in figure 4."""
    cells = [_cell(name, *choice, "douban", seed=seed) for seed in SEEDS for name, choice in GENTLE.items()]
    return [cell for cell in cells if cell not in weights()]


def tried() -> list[Cell]:
    """Settings of the local model."""
    return [
        _cell(f"tried, {name}", "fppdm", ALONE | options, "amazon-game-video", rounds=3)
        for name, options in TRIED.items()
    ]


def cold() -> list[Cell]:
    """CDRIB's cold users."""
    return [
        _cell(name, method, options, "amazon-game-video", protocol="cold", rounds=COLD_ROUNDS)
        for name, (method, options) in COLD.items()
    ]


def cold_larger() -> list[Cell]:
    """CDRIB's cold users, every method that answers, until it stops."""
    return [_cell(name, *choice, LARGER, protocol="cold") for name, choice in ANSWERING.items()]


def larger() -> list[Cell]:
    """What an hour or so gives on the larger pairs; LightGCN goes on until it stops."""
    names = ("FPPDM, alone", "FPPDM", "FPPDM++")
    return [
        *(_cell(name, *MAIN[name], LARGER, seed=seed, rounds=LARGER_ROUNDS) for seed in LARGER_SEEDS for name in names),
        *(_cell(longer(name), *MAIN[name], LARGER, rounds=LONGER_ROUNDS) for name in names),
        _cell("LightGCN, alone", *MAIN["LightGCN, alone"], LARGER),
        _cell("FPPDM++, 2 rounds", "fppdm++", {}, "amazon-phone-elec", rounds=2),
    ]


def agreement(run: confed.Run) -> dict[str, dict[str, float]]:
    """Adjusted Rand index of co-clustering all users of a domain into as many groups as were planted, and those."""
    truth = synthetic_domains_truth(**PEOPLE)
    groups = CoClustering(clusters=len(set(truth.values())))
    scores = {}
    for domain, seen in preferences(run).items():
        found = groups.assign(unnamed(seen.chosen), Stream.of(0, "all users"), 0).argmax(dim=1)
        scores[domain] = float(adjusted_rand_score([truth[user] for user in seen.users], found.tolist()))
    return {"agreement": scores}


def planted() -> list[Cell]:
    """Three synthetic domains: the truth is known."""
    return [
        _cell(name, method, options | {"dim": 32}, SYNTHETIC, seed=seed, measure=agreement)
        for seed in SEEDS
        for name, (method, options) in PLANTED.items()
    ]


PARTS = {
    "main": main_table,
    "planted": planted,
    "baselines": baselines,
    "scores": scores,
    "couplings": couplings,
    "ablation": ablation,
    "clusters": clusters,
    "weights": weights,
    "gentle": gentle,
    "tried": tried,
    "cold": cold,
    "cold-larger": cold_larger,
    "larger": larger,
}


def cells() -> list[Cell]:
    return [cell for part in PARTS.values() for cell in part()]


if __name__ == "__main__":
    run_parts("papers.fppdm.recipe", __doc__, PARTS, RESULTS)
