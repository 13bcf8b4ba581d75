"""From settings to an experiment: data, split, examiners and method, checked before anything is written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from confed.data import Interactions
from confed.data.catalogue import REGISTRY
from confed.data.domain_split import split_domains
from confed.data.domains import Domains
from confed.data.negatives import check_negative_pool
from confed.data.recognition import as_catalogued
from confed.data.registry import load
from confed.data.shares import AnySplit
from confed.data.split import FEWEST_ITEMS, split
from confed.errors import ConfedError, in_domain
from confed.evaluation.domains import Examination
from confed.evaluation.evaluator import sampled_name
from confed.methods.base import Method, Terms
from confed.methods.registry import method_named
from confed.protocol import Protocol, protocol_named
from confed.runs.settings import Settings
from confed.training import Trainer


@dataclass(frozen=True)
class Experiment:
    """What a run is made of, ready to train or to serve. It has trained nothing and holds no model."""

    settings: Settings
    data: Interactions | Domains
    cut: AnySplit
    examination: Examination
    method: Method
    terms: Terms

    @classmethod
    def prepare(
        cls, settings: Settings, data: Interactions | Domains | None = None, *, done: bool = False
    ) -> Experiment:
        """Everything that can be wrong with data and settings is found here, before anything is written. A run that is
        `done` has shown that its method can do it.
        """
        data = _loaded(settings) if data is None else data
        _require_same_data(data, settings)
        _require_fit(settings, several=isinstance(data, Domains))
        data = _filtered(as_catalogued(data, settings.known), settings)
        cut = cut_for(data, settings.protocol, settings.seed)
        examination = Examination.of(cut, settings.protocol, settings.seed)
        _require_rankings(settings.protocol, examination)
        experiment = cls(settings, data, cut, examination, method_named(settings.method), terms_of(settings))
        if not done:
            experiment.check()
        return experiment

    def of_method(self, settings: Settings) -> Experiment:
        """The same data, cut in the same way, for settings that differ in their method alone."""
        _require_fit(settings, several=isinstance(self.data, Domains))
        other = replace(self, settings=settings, method=method_named(settings.method), terms=terms_of(settings))
        other.check()
        return other

    def check(self) -> None:
        """What this method cannot do with this data, before anybody waits for it."""
        for domain, part in self.cut.parts.items():
            with in_domain(domain):
                check_negative_pool(part.training, self.method.negatives(self.terms.config), part.user_ids)
        self.method.check(self.terms, self.cut)

    def trainer(self) -> Trainer:
        """A fresh model."""
        return self.method.trainer(self.terms, self.cut, self.examination.judges)


def cut_for(data: Interactions | Domains, protocol: Protocol, seed: int) -> AnySplit:
    return split_domains(data, protocol, seed) if isinstance(data, Domains) else split(data, protocol, seed)


def terms_of(settings: Settings) -> Terms:
    return Terms(settings.config(), settings.seed, settings.dtype, settings.chunk, settings.protocol.view)


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


def _filtered(data: Interactions | Domains, settings: Settings) -> Interactions | Domains:
    """Without users who have too few items: those the user says, or as many as a split of a known dataset needs.

    Where repeated pairs are dropped, distinct items count. Of data that is not in the catalogue, nobody is dropped
    silently. Of several domains, the split itself leaves out in each whom it cannot cut.
    """
    distinct = settings.protocol.dedupe
    fewest = settings.min_interactions or (FEWEST_ITEMS if settings.known in REGISTRY else 1)
    return data.keep_users(fewest, distinct=distinct)
