"""Rounds, evaluation, the choice of the round, early stopping, checkpoints: one loop for every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from confed.data import Interactions
from confed.data.catalogue import REGISTRY
from confed.data.domain_split import DomainSplit, split_domains
from confed.data.domains import Domains
from confed.data.negatives import check_negative_pool
from confed.data.recognition import as_catalogued
from confed.data.registry import load
from confed.data.split import FEWEST_ITEMS, Split, split
from confed.engines.base import RoundReport, Trainer
from confed.engines.domains import Apart, SiloEngine
from confed.engines.local import LocalEngine
from confed.errors import ConfedError, StoppedError, said_of
from confed.evaluation.domains import DomainEvaluator, DomainResult
from confed.evaluation.evaluator import Evaluator, Result, sampled_name
from confed.methods.base import FederatedMethod
from confed.methods.central import CentralMethod, JointMethod
from confed.methods.published import published
from confed.methods.registry import method_named
from confed.methods.silo import SiloMethod
from confed.models.silo import Shared
from confed.protocol import Protocol, View, protocol_named
from confed.random import fingerprint
from confed.runs.folder import START, Checkpoint, Progress, RunFolder
from confed.runs.memory import peak_rss_mb
from confed.runs.settings import Settings, defaults_in_words
from confed.server.barycentre import Barycentre

Line = dict[str, Any]

_SAVE_SHARE = 20
"""At least so many times the time of the last save passes before the next."""
Listener = Callable[[Line, Settings], None]


@dataclass
class Experiment:
    """Data, split and model of a run, ready to train or to serve."""

    settings: Settings
    data: Interactions | Domains
    cut: Split | DomainSplit
    evaluator: Evaluator | DomainEvaluator
    trainer: Trainer[Any]

    @classmethod
    def prepare(cls, settings: Settings, data: Interactions | Domains | None = None) -> Experiment:
        """Everything that can be wrong with data and settings is found here, before anything is written."""
        data = _loaded(settings) if data is None else data
        _require_same_data(data, settings)
        _require_fit(settings, several=isinstance(data, Domains))
        data = _filtered(as_catalogued(data, settings.known), settings)
        if isinstance(data, Domains):
            several = split_domains(data, settings.protocol, settings.seed)
            judge = DomainEvaluator(several, settings.protocol, settings.seed)
            _require_rankings(settings.protocol, judge.rankings)
            return cls(settings, data, several, judge, make_domain_trainer(settings, several))
        cut = split(data, settings.protocol, settings.seed)
        evaluator = Evaluator(cut, settings.protocol, settings.seed)
        _require_rankings(settings.protocol, evaluator.rankings)
        return cls(settings, data, cut, evaluator, make_trainer(settings, cut))


def _loaded(settings: Settings) -> Interactions | Domains:
    """The data from where it was when the run began, or else by the name it was called."""
    if settings.source is None:
        return load(settings.dataset)
    with suppress(ConfedError):
        found = load(settings.source)
        if found.content_hash == settings.content_hash:
            return found
    try:
        return load(settings.dataset)
    except ConfedError as error:
        raise ConfedError(f"{error} (when the run began, its data was at {settings.source})") from None


def _require_same_data(data: Interactions | Domains, settings: Settings) -> None:
    if settings.content_hash and data.content_hash != settings.content_hash:
        raise ConfedError(
            f"{settings.dataset} is not the data this run was started with: its content hash is "
            f"{data.content_hash[:12]}…, the run's is {settings.content_hash[:12]}…; "
            f"restore the data, or start a new run"
        )


def _require_fit(settings: Settings, *, several: bool) -> None:
    """Method, protocol and data must all speak of one domain, or all of several."""
    protocol, method = settings.protocol, method_named(settings.method)
    if several and not protocol.of_domains:
        raise ConfedError(
            f"{settings.dataset} has several domains, which are evaluated under --protocol warm or cold, "
            f"not {protocol.name}"
        )
    if several and isinstance(method, FederatedMethod):
        raise ConfedError(
            f"{settings.dataset} has several domains, but the clients of {method.name} are people with one kind of "
            f"items: take a method between companies, such as fppdm++, or one that has each domain by itself"
        )
    if not several and isinstance(method, SiloMethod | JointMethod):
        raise ConfedError(
            f"{method.name} is for several domains, {settings.dataset} is one: take douban, synthetic:domains=3, or "
            f"your own files as book=a.csv,music=b.csv"
        )
    if not several and (protocol.of_domains or protocol.population != "shared"):
        raise ConfedError(
            f"{settings.dataset} is one domain: it is evaluated under --protocol strict or paper, and has no "
            f"`population` of several"
        )
    _require_switches_that_act(protocol)


_OF_LAST_ITEMS = ["population", "more_negatives", "neg_pool", "dedupe", "candidates", "shared_candidates"]
_OF_LAST_ITEMS += ["split_ties", "pseudo_time"]
"""Switches of how last items are held out and ranked."""


def _require_switches_that_act(protocol: Protocol) -> None:
    """`cold` holds out otherwise, and what says how last items are held out would do nothing there."""
    own = protocol_named(protocol.name)
    if protocol.held_out != own.held_out:
        raise ConfedError("held_out belongs to the protocol: users who are new to a domain have --protocol cold")
    for name in _OF_LAST_ITEMS:
        if protocol.held_out == "cold users" and getattr(protocol, name) != getattr(own, name):
            raise ConfedError(f"{name} = {getattr(protocol, name)!r}: does nothing under --protocol cold, leave it out")


def _require_rankings(protocol: Protocol, rankings: Collection[str]) -> None:
    """What a protocol has by itself is left out where data is too small; what somebody asks for is not."""
    asked = set(protocol.more_negatives) - set(protocol_named(protocol.name).more_negatives)
    for count in sorted(asked):
        if sampled_name(count) not in rankings:
            raise ConfedError(
                f"more_negatives = {count}: there is somebody with fewer items that he never touched; lower it, or "
                f"leave it out"
            )


def _filtered(data: Interactions | Domains, settings: Settings) -> Interactions | Domains:
    """Without users who have too few items: those the user says, or as many as a split of a known dataset needs.

    Where repeated pairs are dropped, distinct items count. Of data that is not in the catalogue, nobody is dropped
    silently. Of several domains, the split itself leaves out in each whom it cannot cut.
    """
    distinct = settings.protocol.dedupe
    fewest = settings.min_interactions or (FEWEST_ITEMS if settings.known in REGISTRY else 1)
    return data.keep_users(fewest, distinct=distinct)


def make_trainer(settings: Settings, cut: Split) -> Trainer[Any]:
    """The model, to be judged by the protocol's view if it names one, else by the method's own."""
    method = method_named(settings.method)
    config = settings.config()
    view = settings.protocol.view
    check_negative_pool(cut.training, method.negatives(config), cut.user_ids)
    if isinstance(method, FederatedMethod):
        pieces = method.pieces(config, cut.items)
        pieces = replace(pieces, view=view or pieces.view)
        return LocalEngine(pieces, cut.training, settings.seed, chunk=settings.chunk, dtype=settings.dtype)
    assert isinstance(method, CentralMethod)
    return _with_view(method.trainer(config, cut.training, settings.seed, settings.dtype), settings)


def make_domain_trainer(settings: Settings, cut: DomainSplit) -> Trainer[Any]:
    """The model of several domains: companies and a server, all of them in one place, or every domain by itself."""
    method = method_named(settings.method)
    config = settings.config()
    for name, part in cut.parts.items():
        with said_of(f"domain {name}"):
            check_negative_pool(part.training, method.negatives(config), part.user_ids)
    if isinstance(method, SiloMethod):
        return _with_view(_silo_engine(method, config, settings, cut), settings)
    if isinstance(method, JointMethod):
        return _with_view(method.trainer(config, cut, settings.seed, settings.dtype), settings)
    assert isinstance(method, CentralMethod)
    alone = {}
    for name, part in cut.parts.items():
        with said_of(f"domain {name}"):
            alone[name] = method.trainer(config, part.training, settings.seed, settings.dtype)
    return _with_view(Apart(alone), settings)


def _silo_engine(method: SiloMethod, config: Any, settings: Settings, cut: DomainSplit) -> SiloEngine:
    silos = {}
    for name, part in cut.parts.items():
        users, people = (torch.from_numpy(numbers[name]) for numbers in (cut.matching.users, cut.matching.numbers))
        # Companies that know nothing of each other: each draws for itself.
        seed = fingerprint(settings.seed, name)
        shared = Shared.of(users, people, part.training, everybody=cut.matching.people, seed=settings.seed)
        silos[name] = method.silo(config, part.training, shared, seed, settings.dtype)
    start = method.start(config, cut.matching.people, settings.seed, getattr(torch, settings.dtype))
    server = Barycentre(cut.matching.people, start)
    exchange = method.exchange(config)
    view = settings.protocol.view or (method.view if exchange else "local")
    return SiloEngine(silos, server, view, exchange, settings.seed)


def _with_view(trainer: Trainer[Any], settings: Settings) -> Trainer[Any]:
    view = settings.protocol.view
    if view and view not in trainer.views:
        raise ConfedError(f"view = {view!r}: {settings.method} can be scored under {' or '.join(trainer.views)}")
    return trainer


def execute(experiment: Experiment, folder: RunFolder, listener: Listener | None = None) -> dict[str, Any]:
    """Run to the end from wherever the folder's checkpoint stands; returns the summary and writes it."""
    loop = _Loop(experiment, folder, listener)
    loop.resume()
    try:
        loop.run()
    except KeyboardInterrupt:
        # Not saved here: in the middle of a round the clients' state is neither the old one nor the new one.
        raise StoppedError(
            f"stopped in round {loop.progress.round + 1}; go on with `confed run --resume {folder.path}`"
        ) from None
    summary = summarise(experiment, folder, loop.progress, loop.lines)
    folder.save_summary(summary)
    return summary


class _Loop:
    def __init__(self, experiment: Experiment, folder: RunFolder, listener: Listener | None) -> None:
        self.experiment = experiment
        self.settings = experiment.settings
        self.trainer = experiment.trainer
        self.folder = folder
        self.listener = listener
        self.evaluator = experiment.evaluator
        self.progress = START
        self.best: dict[str, Tensor] = {}
        self.ranks: dict[str, Tensor] = {}
        self.lines: list[Line] = []

    def resume(self) -> None:
        self.folder.begin()
        checkpoint = self.folder.load_checkpoint()
        if checkpoint:
            self.progress, self.best, self.ranks = checkpoint.progress, checkpoint.best, checkpoint.ranks
            self.trainer.load(checkpoint.state)
        self.lines = self.folder.truncate_metrics(self.progress.round)

    def run(self) -> None:
        saved, took = time.monotonic(), 0.0
        while not self._finished():
            self._round(self.progress.round + 1)
            began = time.monotonic()
            # Large states take long to write: never more than a small part of the time.
            if began - saved >= max(self.settings.checkpoint_seconds, _SAVE_SHARE * took):
                self._save()
                saved = time.monotonic()
                took = saved - began
        self._save()

    def _finished(self) -> bool:
        patience = self.settings.patience
        stalled = patience is not None and self.progress.evaluations_without_gain >= patience
        return self.progress.round >= self.settings.rounds or stalled

    def _round(self, number: int) -> None:
        began = time.monotonic()
        evaluated = number % self.settings.eval_every == 0 or number == self.settings.rounds
        cards = {view: self.evaluator.scorecard() for view in self.trainer.views} if evaluated else {}
        report = self.trainer.round(number, cards)
        results = {view: card.result() for view, card in cards.items()}
        self.progress = replace(self.progress, round=number)
        line = _line(number, report, results, time.monotonic() - began)
        if evaluated:
            self._choose(number, line, results)
        self.lines.append(line)
        self.folder.append_metrics(line)
        if self.listener:
            self.listener(line, self.settings)

    def _choose(self, number: int, line: Line, results: Mapping[View, Result | DomainResult]) -> None:
        """Keep the round if the selecting metric says so."""
        protocol = self.settings.protocol
        value = line["views"][self.trainer.view][protocol.select_on][protocol.select_metric]
        best = self.progress.best_value
        gain = value > best
        if gain or (value == best and protocol.select_ties == "latest"):
            self.progress = replace(self.progress, best_round=number, best_value=value)
            self.best = {}  # frees the old one before the new one is made: tables that clients keep are large
            self.best = self.trainer.serving_state()
            self.ranks = {name: t for view, result in results.items() for name, t in _rank_tensors(view, result)}
        stalled = 0 if gain else self.progress.evaluations_without_gain + 1
        self.progress = replace(self.progress, evaluations_without_gain=stalled)

    def _save(self) -> None:
        self.folder.save_checkpoint(Checkpoint(self.progress, self.trainer.state(), self.best, self.ranks))


def _rank_tensors(view: View, result: Result | DomainResult) -> Iterator[tuple[str, Tensor]]:
    for name, values in result.rank_arrays().items():
        yield f"{view}.{name}", torch.from_numpy(values)


def _line(number: int, report: RoundReport, results: Mapping[View, Result | DomainResult], seconds: float) -> Line:
    views = {view: {part: result.metrics(part) for part in ("validation", "test")} for view, result in results.items()}
    return {
        "round": number,
        "loss": report.loss,
        "seconds": seconds,
        "participants": report.participants,
        "upload_bytes": report.upload_bytes,
        "download_bytes": report.download_bytes,
        **({"server": dict(report.server)} if report.server else {}),
        "views": views,
    }


def summarise(experiment: Experiment, folder: RunFolder, progress: Progress, lines: list[Line]) -> dict[str, Any]:
    """The summary of a run: metrics in percent at the chosen round; seconds and bytes in total."""
    settings = experiment.settings
    best = next(line for line in lines if line["round"] == progress.best_round)
    views = best["views"]
    totals = {
        name: sum(line[name] for line in lines)
        for name in ("seconds", "participants", "upload_bytes", "download_bytes")
    }
    label = settings.protocol.label
    printed = method_named(settings.method).published_as(settings.config())
    figures = published(printed, settings.known) if printed and settings.known and label == "paper" else []
    return {
        "method": settings.method,
        "dataset": settings.dataset,
        "protocol": label,
        "seed": settings.seed,
        "defaults": defaults_in_words(settings),
        "users": experiment.cut.users,
        "items": experiment.cut.items,
        "negatives": settings.protocol.negatives,
        "rounds": progress.round,
        "best_round": progress.best_round,
        "view": experiment.trainer.view,
        **views[experiment.trainer.view]["test"],
        "validation": views[experiment.trainer.view]["validation"],
        "views": {view: parts["test"] for view, parts in views.items()},
        "seconds": totals["seconds"],
        "seconds_per_round": totals["seconds"] / progress.round,
        "peak_rss_mb": peak_rss_mb(),
        "participations": totals["participants"],
        "upload_bytes": totals["upload_bytes"],
        "download_bytes": totals["download_bytes"],
        "upload_parts": experiment.trainer.upload_parts(),
        **({"noise": lines[-1]["server"]["noise"]} if "noise" in lines[-1].get("server", {}) else {}),
        **_of_the_cut(experiment.cut),
        "published": [vars(figure) for figure in figures],
        "run_dir": str(folder.path),
    }


def _of_the_cut(cut: Split | DomainSplit) -> dict[str, Any]:
    """What its figures cannot show: who is not in them, and what no method could know."""
    if isinstance(cut, DomainSplit):
        return {"left_out": cut.left_out, "untrained": {name: part.untrained for name, part in cut.parts.items()}}
    return {"untrained": cut.untrained}
