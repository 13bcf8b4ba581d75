"""What the registry knows of a method, and what a run asks of it.

A method is a name, a config, and a way to build its own trainer: `methods.devices` has what people's devices have in
common, `methods.silo` companies, `methods.central` data in one place.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from confed.clients.replay import Replay
from confed.config import MethodConfig
from confed.data.interactions import ONLY
from confed.data.shares import AnySplit, Roster, Share
from confed.errors import ConfedError, NobodyNewError, in_domain
from confed.evaluation.judge import Judge
from confed.federations.federated import Federated, Server
from confed.federations.gateway import Gateway
from confed.federations.local import LocalFederation
from confed.federations.site import Site
from confed.messages import Tally
from confed.models.silo import Silo
from confed.privacy.filters import Chain
from confed.privacy.gaussian import Gaussian
from confed.protocol import View
from confed.ragged import Ragged
from confed.scoring import Scorer, fill
from confed.training import Trainer

Kind = Literal["federated", "silo", "central", "control"]
State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Terms:
    """How a method is to learn: its options, and what the run settles."""

    config: Any
    seed: int
    dtype: str = "float32"
    chunk: int | None = None
    """Clients trained at once, where a method trains many."""
    view: View | None = None
    """By which it is to be judged, if that was asked for; else its own."""
    rounds: int = 1
    """How many there will be: what clients keep may grow with them."""

    @property
    def number_type(self) -> torch.dtype:
        found: torch.dtype = getattr(torch, self.dtype)
        return found


class FilteredConfig(MethodConfig):
    """What every method has whose clients send something."""

    upload_clip: float | None = Field(default=None, gt=0)
    """Clip what is sent to this length: a client's whole change, or a company's rows about a person; with
    `upload_noise`, the Gaussian mechanism."""
    upload_noise: float | None = Field(default=None, ge=1e-6)
    """Deviation of the noise on every number that is sent, in multiples of `upload_clip`."""

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.upload_clip is None) != (self.upload_noise is None):
            raise ValueError("upload_clip and upload_noise belong together: set both, or neither")
        return self

    @property
    def least(self) -> dict[str, float]:
        """By name of what is sent, the smallest number that makes sense."""
        return {}

    @property
    def filters(self) -> Chain:
        """What uploads pass on their way."""
        if self.upload_clip is None or self.upload_noise is None:
            return Chain()
        return Chain((Gaussian(self.upload_clip, self.upload_noise, self.least),))


class Method(ABC):
    """What the registry knows of a method."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    kind: ClassVar[Kind]
    about: ClassVar[str | None] = None
    """What it does and where it deviates, if the docstring of its module leaves that to another."""
    domains: ClassVar[Literal["one", "several", "any"]]
    """What data it is for: of one domain, of several, or of several as well as of one."""
    most_domains: ClassVar[int | None] = None
    """Of several, where there may not be any number of them."""
    config_class: ClassVar[type[MethodConfig]]
    has_clients: ClassVar[bool] = False
    """Whether there are clients and a server, who may be in different places."""
    rounds: ClassVar[int] = 100
    """Default number of rounds, or of epochs where the data is in one place."""
    patience: ClassVar[int | None] = None
    """Evaluations without a gain after which a run of the default length ends early."""
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Settings per dataset of the catalogue that differ from the config's own defaults."""
    discloses: ClassVar[str] = "nothing"
    """What the design shows the server or others beyond the declared upload."""

    def config(self, known: str | None, overrides: Mapping[str, Any]) -> MethodConfig:
        """The config class's defaults, those for the dataset of the catalogue that the data is `known` to be, then the
        user's; each may set single fields of a section.
        """
        merged: dict[str, Any] = {**self.defaults.get(known or "", {})}
        for key, value in overrides.items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, Mapping) else value
        return self.config_class.model_validate(merged)

    def measured(self, config: Any, cut: AnySplit) -> dict[str, float]:
        """The facts of the training data from which those options follow that are left open; none, if none is."""
        return {}

    def settled(self, config: MethodConfig, facts: Mapping[str, float]) -> MethodConfig:
        """The config with its open options as they follow from `facts`."""
        return config

    def settled_in_words(self, config: Any, facts: Mapping[str, float]) -> str:
        """Which options followed from `facts`, and how."""
        return "some options follow from the data: " + ", ".join(f"{name} = {value:g}" for name, value in facts.items())

    def paragraphs(self) -> list[str]:
        """What it does and where it deviates. Docstrings are wrapped for the source; here a paragraph is one line, and
        what is indented keeps its lines. Empty where neither the method nor its module says anything.
        """
        text = inspect.cleandoc(self.about or sys.modules[type(self).__module__].__doc__ or "")
        return [one if one.startswith(" ") else " ".join(one.split()) for one in text.split("\n\n") if one]

    def negatives(self, config: Any) -> int:
        """How many items are drawn against each positive in training; 0 where none are."""
        return int(getattr(config, "train_negatives", 0))

    def published_as(self, config: Any) -> str | None:
        """The name under which papers print figures of this configuration; None where they do not."""
        return self.name

    @abstractmethod
    def trainer(self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge]) -> Trainer:
        """A fresh model of the training data of `cut`, in this process, examined by `judges`, by domain."""

    def check(self, terms: Terms, cut: AnySplit) -> None:
        """Raise what stands in the way of training on `cut`."""
        trainer = self.trainer(terms, cut, {})
        if terms.view and terms.view not in trainer.views:
            views = " or ".join(trainer.views)
            raise ConfedError(f"view = {terms.view!r}: {self.name} can be scored under {views}")

    @abstractmethod
    def scorer(self, terms: Terms, cut: AnySplit, state: State, number: int, domain: str = ONLY) -> Scorer:
        """How the users of a domain were scored in round `number`, by what was kept of it: `Trainer.serving_state`."""

    def examined(
        self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge], state: State, number: int
    ) -> dict[str, Tally]:
        """Where held-out items stood in round `number`, by what was kept of it, for whomever `judges` examine."""
        tallies = {}
        for domain, judge in judges.items():
            card = judge.scorecard()
            with in_domain(domain):
                fill(card, self.scorer(terms, cut, state, number, domain), cut.parts[domain].items)
            tallies[domain] = card.tally()
        return tallies

    def newcomers(
        self, terms: Terms, cut: AnySplit, state: State, number: int, histories: Ragged, domain: str = ONLY
    ) -> Tensor:
        """(newcomers, items): how people are scored who were not in the data and have these items, by what was kept of
        round `number`.
        """
        others = "ease or ials" if self.domains == "several" else "ease, ials or a method across devices"
        raise NobodyNewError(
            f"{self.name} serves only those it trained on: who is new, or was left out for too few items, takes "
            f"{others}"
        )

    def item_vectors(self, terms: Terms, cut: AnySplit, state: State, domain: str = ONLY) -> Tensor:
        """(items, d): items of which the vectors have a small angle are alike to the method."""
        raise ConfedError(f"{self.name} has no vectors of items that could be compared")

    def replay(
        self, terms: Terms, cut: AnySplit, state: State, number: int, clients: Tensor, *, everybody: bool = False
    ) -> Replay | None:
        """People at `clients` as they were scored in round `number`, for whoever wants to look at what they have; with
        `everybody`, as the next local training would leave each of them. None where a method has no such clients.
        """
        return None

    def companies(self, terms: Terms, cut: AnySplit, state: State | None) -> Mapping[str, Silo]:
        """Companies as they were when `state` was kept, or as they begin; empty where a method has none."""
        return {}

    def facts(self, config: Any, view: View | None = None) -> dict[str, Any]:
        """What travels, and how it is judged, by default or by `view`, as plain data; of a method with clients."""
        return {}

    def released(self, config: Any, cut: AnySplit) -> dict[str, Any]:
        """What noise promises on data that is given away once, before training; empty where none is."""
        return {}

    def upload_parts(self, terms: Terms, cut: AnySplit) -> dict[str, int]:
        """Bytes of the shared parameters that one client sends in a round: of item tables, of networks, of others; not
        of facts such as its loss, nor of a message's header. Of companies, the whole message of each.
        """
        return {}


class FederatedMethod(Method):
    """A method with clients and a server: a server's side, a clients' side, and nothing that needs both."""

    has_clients: ClassVar[bool] = True

    @abstractmethod
    def server(self, terms: Terms, roster: Roster) -> Server:
        """The server's side, for the clients of `roster`."""

    @abstractmethod
    def gateway(self, terms: Terms, share: Share) -> Gateway:
        """The side of those clients whose data `share` is."""

    def facts(self, config: Any, view: View | None = None) -> dict[str, Any]:
        server = self.server(Terms(config, seed=0, view=view), Roster.of_nobody())
        agreed = server.agreement
        return {
            "view": server.view,
            "views": list(server.views),
            "uploads": sorted(agreed.uploads),
            "aggregation": agreed.needs,
        }

    def site(self, terms: Terms, share: Share, judges: Mapping[str, Judge], *, rebuilt: bool) -> Site:
        return Site(lambda: self.gateway(terms, share), judges, rebuilt=rebuilt)

    def trainer(self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge]) -> Federated:
        server = self.server(terms, Roster.of(cut))
        return Federated(server, LocalFederation(self.site(terms, Share.of(cut), judges, rebuilt=server.rebuilt)))


def federated(method: Method) -> FederatedMethod:
    """The method, if it has clients."""
    if not isinstance(method, FederatedMethod):
        raise ConfedError(f"{method.name} has all data in one place: it runs with --engine local")
    return method
