"""One measurement, printed as JSON: python -m benchmarks.measure engine|oracle METHOD DATASET ROUNDS."""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from typing import Any

import torch

from benchmarks import plain
from confed.data import load_dataset
from confed.data.split import Split, split
from confed.engines.local import LocalEngine
from confed.evaluation.candidates import draw_candidates
from confed.evaluation.evaluator import Evaluator
from confed.evaluation.protocol import STRICT
from confed.methods.base import FederatedMethod
from confed.methods.registry import method_named
from confed.runs.memory import peak_rss_mb

SEED = 0


def engine_rounds(name: str, dataset: str, rounds: int) -> dict[str, float]:
    """The median of `rounds` rounds after one to warm up, with the evaluation of validation and test items.

    Under the method's own view, as the oracle is; ours ranks all items beside the sampled candidates.
    """
    cut = split(load_dataset(dataset), STRICT, SEED)
    method = method_named(name)
    assert isinstance(method, FederatedMethod)
    engine = LocalEngine(method.pieces(method.config(dataset, {}), cut.items), cut.training, SEED)
    evaluator = Evaluator(cut, STRICT, SEED)
    seconds = []
    for number in range(1, rounds + 2):
        began = time.perf_counter()
        cards = {engine.view: evaluator.scorecard()}
        engine.round(number, cards)
        for card in cards.values():
            card.result().metrics("validation"), card.result().metrics("test")
        seconds.append(time.perf_counter() - began)
    return {"seconds": statistics.median(seconds[1:]), "peak_mb": peak_rss_mb()}


def oracle_round(name: str, dataset: str) -> dict[str, float]:
    """One round of all clients, one after another. It is timed once: it takes as long as all of ours together."""
    cut = split(load_dataset(dataset), STRICT, SEED)
    config: Any = method_named(name).config(dataset, {})
    federation = plain_federation(name, config, cut.items)
    state = federation.model.state_dict()
    candidates = [torch.from_numpy(drawn) for drawn in draw_candidates(cut, STRICT, SEED)]
    rng = random.Random(SEED)
    began = time.perf_counter()
    shared: plain.State = {key: torch.zeros_like(value) for key, value in state.items()}
    for client in range(cut.users):
        model = train_plainly(federation, state, cut, client, config.train_negatives, rng)
        for key, value in model.state_dict().items():
            shared[key] += value / cut.users
        for held_out, drawn in zip((cut.validation, cut.test), candidates, strict=True):
            plain.rank_client(model, int(held_out[client]), drawn[client])
    return {"seconds": time.perf_counter() - began, "peak_mb": peak_rss_mb()}


def train_plainly(
    federation: plain.PlainFederation,
    state: plain.State,
    cut: Split,
    client: int,
    negatives: int,
    rng: random.Random,
) -> torch.nn.Module:
    """Sampling and local training of one client."""
    excluded = set(cut.training.excluded[client].tolist())
    pool = [item for item in range(cut.items) if item not in excluded]
    items, labels = plain.sample_rows(cut.training.positives[client].tolist(), pool, negatives, rng)
    orders = [torch.randperm(len(items)) for _ in range(federation.epochs)]
    return federation.train_client(state, items, labels, orders)


def plain_federation(name: str, config: Any, items: int) -> plain.PlainFederation:
    """The oracle's form of each method."""
    rate = config.learning_rate
    model: torch.nn.Module
    steps: tuple[plain.PlainStep, ...]
    if name == "pfedrec":
        model = plain.PlainLinear(items, config.dim)
        item_rate = rate * items * config.item_rate_factor
        steps = (plain.PlainStep({"affine": rate}), plain.PlainStep({"embedding": item_rate}))
    elif name == "fedmf":
        model = plain.PlainDot(items, config.dim)
        steps = (plain.PlainStep({"user": rate, "embedding": config.item_rate(items)}),)
    else:
        model = plain.PlainNeuMF(items, config.dim, config.tower)
        steps = (plain.PlainStep({"": rate}, "adam"),)
    return plain.PlainFederation(model, steps, config.local_epochs, config.batch_size)


def main() -> None:
    what, method, dataset, rounds = sys.argv[1:]
    found = engine_rounds(method, dataset, int(rounds)) if what == "engine" else oracle_round(method, dataset)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
