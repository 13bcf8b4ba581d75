"""A method is a name, a config and a choice of pieces. Everything else is shared machinery."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from confed.clients.backbones import Backbone
from confed.clients.objectives import BCE, SaturatingBCE, Term
from confed.clients.procedures import Procedure
from confed.config import MethodConfig
from confed.messages import Agreement
from confed.protocol import View
from confed.server.selection import Selection
from confed.server.strategies import Strategy

Kind = Literal["federated", "silo", "central", "control"]


class Reproduction(BaseModel):
    """Faithfulness to flaws of published code, off by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    saturating_bce: bool = False
    """Cross-entropy of float32 probabilities, whose gradient vanishes on saturated errors (D-1)."""


class FederatedConfig(MethodConfig):
    """What every cross-device method has."""

    dim: int = Field(default=32, ge=1)
    """Width of item and user vectors."""
    learning_rate: float = Field(default=0.1, gt=0)
    """Step size of the private parameters and networks."""
    local_epochs: int = Field(default=1, ge=1)
    """Passes over a client's rows in one round."""
    batch_size: int = Field(default=256, ge=1)
    """Rows per local step."""
    train_negatives: int = Field(default=4, ge=1)
    """Sampled negatives per positive, redrawn every round."""
    fraction: float = Field(default=1.0, gt=0, le=1)
    """Share of the clients that take part in a round."""
    reproduction: Reproduction = Reproduction()
    """Flaws of published code to reproduce, such as reproduction.saturating_bce."""

    @property
    def loss(self) -> Term:
        return SaturatingBCE() if self.reproduction.saturating_bce else BCE()


@dataclass(frozen=True)
class Pieces:
    """The five choices of a cross-device method."""

    backbone: Backbone
    procedure: Procedure
    strategy: Strategy
    selection: Selection
    view: View

    def agreement(self, dtype: torch.dtype) -> Agreement:
        """What server and clients settle about their messages before the first round."""
        items = next(spec.shape[0] for spec in self.backbone.named(role="item"))
        received, kept = (
            {spec.name: spec.shape for spec in self.backbone.named(scope="shared", kept=kept)} for kept in (False, True)
        )
        return Agreement(items, dtype, received, kept, self.strategy.uploads, self.strategy.side)


class Method(ABC):
    """What the registry knows of a method."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    kind: ClassVar[Kind]
    about: ClassVar[str | None] = None
    """What it does and where it deviates, if the docstring of its module leaves that to another."""
    config_class: ClassVar[type[MethodConfig]]
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

    def negatives(self, config: Any) -> int:
        """How many items are drawn against each positive in training; 0 where none are."""
        return int(getattr(config, "train_negatives", 0))

    def published_as(self, config: Any) -> str | None:
        """The name under which papers print figures of this configuration; None where they do not."""
        return self.name


class FederatedMethod(Method):
    """A cross-device method."""

    kind: ClassVar[Kind] = "federated"

    @abstractmethod
    def pieces(self, config: Any, items: int) -> Pieces:
        """Choose the pieces for `items` items."""
