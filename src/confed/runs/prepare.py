"""From settings to an experiment: data, split, examiners and method, checked before anything is written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from confed.data.domain_split import split_domains
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.negatives import check_negative_pool
from confed.data.recognition import as_catalogued
from confed.data.registry import load
from confed.data.shares import AnySplit
from confed.data.split import split
from confed.errors import ConfedError, in_domain, said_of
from confed.evaluation.domains import Examination
from confed.evaluation.evaluator import sampled_name
from confed.evaluation.sample import sample_of
from confed.methods.base import Method, Terms
from confed.methods.registry import method_named
from confed.protocol import Protocol, protocol_named
from confed.runs.fitting import with_candidates, with_enough
from confed.runs.memory import within_memory
from confed.runs.settings import Settings, settled
from confed.training import Trainer


@dataclass(frozen=True)
class Experiment:
    """What a run is made of, ready to train or to serve. It has trained nothing and holds no model."""

    settings: Settings
    """With every option that follows from the data."""
    data: Interactions | Domains
    cut: AnySplit
    examination: Examination
    method: Method
    terms: Terms
    whole: Interactions | Domains
    """The data with those whom the run leaves out."""
    notices: tuple[str, ...] = ()
    """What was done about data that is too small for what is usual; whoever starts a run should hear of it."""

    @classmethod
    def prepare(
        cls, settings: Settings, data: Interactions | Domains | None = None, *, done: bool = False
    ) -> Experiment:
        """Everything that can be wrong with data and settings is found here, before anything is written. A run that is
        `done` has shown that its method can do it.
        """
        data = _loaded(settings) if data is None else data
        _require_same_data(data, settings, done=done)
        _require_fit(settings, several=isinstance(data, Domains))
        whole = as_catalogued(data, settings.known)
        data, left_out = with_enough(whole, settings)
        cut = cut_for(data, settings.protocol, settings.seed)
        settings, fewer = with_candidates(settings, cut)
        settings = _settled(settings, cut)
        examination = Examination.of(cut, settings.protocol, settings.seed, sample=sample_for(settings, cut))
        _require_rankings(settings.protocol, examination)
        method, terms = method_named(settings.method), terms_of(settings)
        experiment = cls(settings, data, cut, examination, method, terms, whole, (*left_out, *fewer))
        if not done:
            experiment.check()
        return experiment

    def of_method(self, settings: Settings) -> Experiment:
        """The same data, cut in the same way, for settings that differ in their method alone."""
        _require_fit(settings, several=isinstance(self.data, Domains))
        settings = _settled(with_candidates(settings, self.cut)[0], self.cut)
        other = replace(self, settings=settings, method=method_named(settings.method), terms=terms_of(settings))
        other.check()
        return other

    def check(self) -> None:
        """What this method cannot do with this data, before anybody waits for it."""
        for domain, part in self.cut.parts.items():
            with said_of(self.settings.dataset), in_domain(domain):
                check_negative_pool(part.training, self.method.negatives(self.terms.config))
        with within_memory(self.terms.config):
            self.method.check(self.terms, self.cut)

    def trainer(self) -> Trainer:
        """A fresh model."""
        return self.method.trainer(self.terms, self.cut, self.examination.judges)


def cut_for(data: Interactions | Domains, protocol: Protocol, seed: int) -> AnySplit:
    return split_domains(data, protocol, seed) if isinstance(data, Domains) else split(data, protocol, seed)


def _settled(settings: Settings, cut: AnySplit) -> Settings:
    """With the options that nobody set, where they follow from the data."""
    return settled(settings, method_named(settings.method).measured(settings.config(), cut))


def sample_for(settings: Settings, cut: AnySplit) -> dict[str, int] | None:
    """Who is examined in every round, if not everybody."""
    if settings.eval_users is None:
        return None
    if settings.protocol.held_out == "cold users":
        raise ConfedError("--eval-users does nothing under --protocol cold, which ranks interactions: leave it out")
    return sample_of(cut, settings.seed, settings.eval_users)


def terms_of(settings: Settings) -> Terms:
    how = (settings.seed, settings.dtype, settings.chunk, settings.protocol.view, settings.rounds)
    return Terms(settings.config(), *how)


def _loaded(settings: Settings) -> Interactions | Domains:
    """The data from where it was when the run began, or else by the name it was called."""
    if settings.source is None:
        return load(settings.dataset)

    def read(source: str) -> Interactions | Domains:
        """In the way it was read then; what there was to say about that was said then."""
        return load(source, **settings.reading, notice=lambda _: None)

    with suppress(ConfedError):
        found = read(settings.source)
        if found.content_hash == settings.content_hash:
            return found
    try:
        return read(settings.dataset)
    except ConfedError as error:
        raise ConfedError(
            f"{error.message} (when the run began, its data was at {settings.source}); say with --data where it is now"
        ) from None


def moved(settings: Settings, data: Any) -> Interactions | Domains:
    """The run's data from where somebody says that it is."""
    found = load(data, **settings.reading, notice=lambda _: None)
    if found.content_hash != settings.content_hash:
        raise ConfedError(f"--data {data} is not what the run was trained on, either: give a copy as old as the run")
    return found


def _require_same_data(data: Interactions | Domains, settings: Settings, *, done: bool) -> None:
    """A run keeps no copy of files, which may be private, and means nothing without them: items are places in it."""
    if not settings.content_hash or data.content_hash == settings.content_hash:
        return
    now = f"train on what is there now (`confed recommend {settings.dataset}` does)" if done else "start a new run"
    remedy = f"{now}, or say with --data where a copy of the old data is"
    raise ConfedError(
        f"{settings.dataset} is not the data this run was started with: its content hash is "
        f"{data.content_hash[:12]}…, the run's is {settings.content_hash[:12]}…, and a run keeps no copy. If rows came "
        f"or went since, {remedy}"
    )


def _require_fit(settings: Settings, *, several: bool) -> None:
    """Method, protocol and data must all speak of one domain, or all of several."""
    protocol, method = settings.protocol, method_named(settings.method)
    if several and protocol.measures and not protocol.of_domains:
        raise ConfedError(
            f"{settings.dataset} has several domains, which are evaluated under --protocol warm or cold, "
            f"not {protocol.name}"
        )
    if several and method.domains == "one":
        raise ConfedError(
            f"{settings.dataset} has several domains, but the clients of {method.name} are people with one kind of "
            f"items: take a method between companies, such as fppdm++, or one that has each domain by itself"
        )
    if not several and method.domains == "several":
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


ACTS_ALWAYS = {"dedupe", "view"}
"""Switches that act where nothing is held out, too."""
_OF_LAST_ITEMS = {"population", "more_negatives", "neg_pool", "dedupe", "candidates", "shared_candidates"}
_OF_LAST_ITEMS |= {"split_ties", "pseudo_time"}
"""Switches of how last items are held out and ranked."""
_IDLE = {
    "last items": set(),
    "cold users": _OF_LAST_ITEMS,
    "nothing": set(Protocol.model_fields) - {"name", "held_out"} - ACTS_ALWAYS,
}
"""By what is held out, the switches that would do nothing."""


def _require_switches_that_act(protocol: Protocol) -> None:
    """`cold` and `everything` hold out otherwise: what says how last items are held out would do nothing there."""
    own = protocol_named(protocol.name)
    if protocol.held_out != own.held_out:
        raise ConfedError("held_out belongs to the protocol: users who are new to a domain have --protocol cold")
    for name in sorted(_IDLE[protocol.held_out]):
        if getattr(protocol, name) != getattr(own, name):
            raise ConfedError(
                f"{name} = {getattr(protocol, name)!r}: does nothing under --protocol {protocol.name}, leave it out"
            )


def _require_rankings(protocol: Protocol, examination: Examination) -> None:
    """What a protocol has by itself is left out where data is too small; what somebody asks for is not."""
    rankings = {ranking for of in examination.grading.rankings.values() for ranking in of}
    asked = set(protocol.more_negatives) - set(protocol_named(protocol.name).more_negatives)
    for count in sorted(asked):
        if sampled_name(count) not in rankings:
            raise ConfedError(
                f"more_negatives = {count}: there is somebody with fewer items that he never touched; lower it, or "
                f"leave it out"
            )
