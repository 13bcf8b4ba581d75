"""One measurement, printed as JSON.

python -m benchmarks.measure engine|oracle|domains METHOD DATASET ROUNDS [KEY=VALUE …]
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks import plain
from confed.data.recognition import in_catalogue
from confed.data.registry import load_dataset
from confed.data.split import Split, split
from confed.evaluation.candidates import draw_candidates
from confed.methods.registry import method_named
from confed.protocol import STRICT
from confed.runs.memory import peak_rss_mb
from confed.runs.prepare import Experiment
from confed.runs.settings import resolve

SEED = 0
_WARM_UP = 2
"""Rounds before the clock counts: compilation, and in CoFedRec's first round there are no categories yet."""
_DENSE = ("cofedrec", "fed3cr")
"""Methods with terms on whole tables, for which the oracle would take minutes."""
_DENSE_CLIENTS = 30
"""Clients on which the oracle of these is timed; the rest is scaled."""


def engine_rounds(name: str, dataset: str, rounds: int, options: Mapping[str, Any]) -> dict[str, float]:
    """The median of `rounds` rounds after two to warm up, with the evaluation of validation and test items.

    Under the method's own view, as the oracle is; ours ranks all items beside the sampled candidates.
    """
    return timed(prepared(name, dataset, options=options), rounds, _WARM_UP)


def domain_rounds(name: str, dataset: str, rounds: int, options: Mapping[str, Any]) -> dict[str, float]:
    """The same for companies. A single round is the first: on large data nobody wants to wait for another two."""
    return timed(prepared(name, dataset, protocol="warm", options=options), rounds, _WARM_UP if rounds > 1 else 0)


def prepared(name: str, dataset: str, **settings: Any) -> Experiment:
    known = dataset if in_catalogue(dataset) else None
    return Experiment.prepare(resolve(name, dataset, known=known, seed=SEED, **settings))


def timed(experiment: Experiment, rounds: int, warm_up: int) -> dict[str, float]:
    trainer, grading = experiment.trainer(), experiment.examination.grading
    seconds, cpu = [], []
    for number in range(1, rounds + warm_up + 1):
        began, began_cpu = time.perf_counter(), time.process_time()
        for tallies in trainer.round(number, [trainer.view]).tallies.values():
            result = grading.result(tallies)
            result.metrics("validation"), result.metrics("test")
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
    found = {"seconds": seconds[warm_up:], "cpu_seconds": cpu[warm_up:]}
    return {name: statistics.median(values) for name, values in found.items()} | {"peak_mb": peak_rss_mb()}


def oracle_round(name: str, dataset: str) -> dict[str, float]:
    """One round of all clients, one after another. It is timed once: it takes as long as all of ours together.

    With terms on whole tables it would take minutes: there, clients of all lengths are timed and the rest is scaled.
    """
    if name not in _DENSE:
        torch.set_num_threads(1)  # operations on a batch are so small that two threads take longer, however they wait
    cut = split(load_dataset(dataset), STRICT, SEED)
    config: Any = method_named(name).config(dataset, {})
    federation = plain_federation(name, config, cut.items)
    state = federation.model.state_dict()
    candidates = [torch.from_numpy(drawn) for drawn in draw_candidates(cut, STRICT, SEED)]
    rng = random.Random(SEED)
    began, began_cpu = time.perf_counter(), time.process_time()
    shared: plain.State = {key: torch.zeros_like(value) for key, value in state.items()}
    clients = np.argsort(cut.training.positives.lengths, kind="stable")
    if name in _DENSE:
        clients = clients[np.linspace(0, cut.users - 1, _DENSE_CLIENTS).round().astype(np.int64)]
    for client in clients.tolist():
        model = train_plainly(federation, state, cut, client, config.train_negatives, rng)
        for key, value in model.state_dict().items():
            shared[key] += value / cut.users
        for held_out, drawn in zip((cut.validation, cut.test), candidates, strict=True):
            plain.rank_client(model, int(held_out[client]), drawn[client])
    scale = cut.users / len(clients)
    seconds, cpu = (time.perf_counter() - began) * scale, (time.process_time() - began_cpu) * scale
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak_rss_mb()}


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
    if name == "fedrap":
        return plain_fedrap(config, items)
    if name == "fed3cr":
        return plain_fed3cr(config, items)
    rate = config.learning_rate
    model: torch.nn.Module
    steps: tuple[plain.PlainStep, ...]
    penalty = None
    if name in ("pfedrec", "cofedrec"):
        model = plain.PlainLinear(items, config.dim)
        item_rate = config.item_rate(items)
        steps = (plain.PlainStep({"affine": rate}), plain.PlainStep({"embedding": item_rate}))
        if name == "cofedrec":
            penalty = contrast(config, torch.arange(items) % config.clusters)
    elif name == "fedmf":
        model = plain.PlainDot(items, config.dim)
        steps = (plain.PlainStep({"user": rate, "embedding": config.item_rate(items)}),)
    else:
        model = plain.PlainNeuMF(items, config.dim, config.tower)
        steps = (plain.PlainStep({"": rate}, "adam"),)
    return plain.PlainFederation(model, steps, config.local_epochs, config.batch_size, penalty)


def plain_fedrap(config: Any, items: int) -> plain.PlainFederation:
    """Two tables, two terms on the batch's rows with the weights of the first round, decay and a stopping rule."""
    grown = math.tanh(0.1)

    def penalty(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
        shared, own = (model.get_submodule(name)(batch) for name in ("embedding", "personal"))
        apart = -config.independence * torch.nn.functional.mse_loss(own, shared)
        value: torch.Tensor = grown * (apart + config.sparsity * shared.abs().mean())
        return value

    rates = {"affine": config.learning_rate, "embedding": config.item_rate, "personal": config.item_rate}
    return plain.PlainFederation(
        plain.PlainAdditive(items, config.dim),
        (plain.PlainStep(rates),),
        config.local_epochs,
        config.batch_size,
        penalty,
        config.weight_decay,
        config.batch_decay,
        config.tolerance,
    )


def plain_fed3cr(config: Any, items: int) -> plain.PlainFederation:
    """Two tables, the transfer matrix generated anew for every batch, both terms on whole tables by autograd."""

    def penalty(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
        assert isinstance(model, plain.PlainDual) and model.seen is not None
        enhanced, own = model.seen
        alike = plain.list_consistency(enhanced, own, model.positives, config.temperature)
        apart = plain.orthogonality(enhanced, own)
        value: torch.Tensor = config.consistency_weight * alike + config.complementarity_weight * apart
        return value

    rates = {"inner.user": config.learning_rate, "generator": config.learning_rate}
    rates |= {"inner.embedding": config.item_rate, "personal": config.item_rate}
    inner = plain.PlainDot(items, config.dim)
    model = plain.PlainDual(inner, items, config.dim, config.layers, config.alpha, residual=config.residual)
    return plain.PlainFederation(
        model,
        (plain.PlainStep(rates),),
        config.local_epochs,
        config.batch_size,
        penalty,
        batch_decay=config.batch_decay,
    )


def contrast(config: Any, membership: torch.Tensor) -> Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]:
    """CoFedRec's term on the whole table, by autograd. Its cost does not depend on which item is in which category."""

    def penalty(model: torch.nn.Module, items: torch.Tensor) -> torch.Tensor:
        rows = model.get_parameter("embedding.weight")
        value: torch.Tensor = config.contrast * plain.supervised_contrast(rows, membership, config.temperature)
        return value

    return penalty


def main() -> None:
    what, method, dataset, rounds, *pairs = sys.argv[1:]
    options = dict(pair.split("=") for pair in pairs)
    if what == "oracle":
        found = oracle_round(method, dataset)
    else:
        found = (engine_rounds if what == "engine" else domain_rounds)(method, dataset, int(rounds), options)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
