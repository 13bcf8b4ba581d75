"""Two item tables in place of one: the shared table, reshaped for the client, and one of its own, added up. Fed3CR.

`DualTable` wraps any backbone. With C the shared item table (all of them side by side, where there are several), V the
client's own and D its training positives, the backbone scores with

    V^F = C^E + V,      C^E = C W^T,      W = α · F([mean_D C ; mean_D V]; θ),

where F is a fully connected network that everybody shares; with `residual`, Fed3CR's default, the identity is added
to W. Other ways to reshape C are `Transfer`s: nothing at all
(C^E = C), one learned matrix for everybody (`LearnedTransfer`), the same for both tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from confed.clients.backbones.base import Backbone, ParamSpec, inner
from confed.initial import normal, uniform

OWN = "own"
"""The client's own table, as held and as looked at."""
ENHANCED = "enhanced"
"""The shared table as the client looks at it."""


class Transfer(ABC):
    """How a client reshapes the shared table."""

    params: tuple[ParamSpec, ...] = ()

    @abstractmethod
    def __call__(
        self, params: Mapping[str, Tensor], shared: Tensor, own: Tensor, liked: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Both tables as looked at, each (clients, n, d); `shared` may have a client axis of 1."""


class NoTransfer(Transfer):
    """The shared table as it is."""

    def __call__(
        self, params: Mapping[str, Tensor], shared: Tensor, own: Tensor, liked: Tensor
    ) -> tuple[Tensor, Tensor]:
        return shared, own


class LearnedTransfer(Transfer):
    """One matrix T for everybody, at first the identity: C T^T beside V, or beside V T^T where it is `unified`."""

    def __init__(self, width: int, *, unified: bool) -> None:
        self.unified = unified
        self.params = (ParamSpec("transfer", (width, width), "net", "shared", _identity),)

    def __call__(
        self, params: Mapping[str, Tensor], shared: Tensor, own: Tensor, liked: Tensor
    ) -> tuple[Tensor, Tensor]:
        matrix = params["transfer"].mT
        return shared @ matrix, own @ matrix if self.unified else own


class AdaptiveTransfer(Transfer):
    """ACE: a matrix of each client's own, made from its two prototypes by a network that everybody shares."""

    def __init__(
        self, width: int, layers: int, scale: float, *, residual: bool = False, detach_prototypes: bool = False
    ) -> None:
        """`layers` ≥ 1 linear layers, of widths 2d → 4d → 8d → … → d², with ReLU between them."""
        self.width = width
        self.scale = scale
        self.residual = residual
        self.detach_prototypes = detach_prototypes
        widths = [2**number * width for number in range(1, layers + 1)]
        specs: list[ParamSpec] = []
        for layer, (inputs, outputs) in enumerate(zip(widths, [*widths[1:], width * width], strict=True)):
            bound = uniform(inputs**-0.5)
            specs.append(ParamSpec(f"generator_weight_{layer}", (outputs, inputs), "net", "shared", bound))
            specs.append(ParamSpec(f"generator_bias_{layer}", (outputs,), "net", "shared", bound))
        self.layers = layers
        self.params = tuple(specs)

    def __call__(
        self, params: Mapping[str, Tensor], shared: Tensor, own: Tensor, liked: Tensor
    ) -> tuple[Tensor, Tensor]:
        return shared @ self.matrix(params, shared, own, liked).mT, own

    def matrix(self, params: Mapping[str, Tensor], shared: Tensor, own: Tensor, liked: Tensor) -> Tensor:
        """(clients, d, d): W."""
        prototypes = torch.cat([prototype(shared, liked), prototype(own, liked)], dim=1)
        hidden = prototypes.detach() if self.detach_prototypes else prototypes
        for layer in range(self.layers):
            hidden = torch.relu(hidden) if layer else hidden
            hidden = inner(params[f"generator_weight_{layer}"], hidden) + params[f"generator_bias_{layer}"]
        made = self.scale * hidden.view(-1, self.width, self.width)
        return made + torch.eye(self.width, dtype=made.dtype) if self.residual else made


class DualTable(Backbone):
    """`backbone` with a second, private item table; its score is the backbone's on the sum of both."""

    reshapes = True
    views = (ENHANCED, OWN)

    def __init__(self, backbone: Backbone, transfer: Transfer, deviation: float) -> None:
        """`deviation` of the own table at the start; never 0, cosines need a direction."""
        tables = backbone.named(role="item")
        self.backbone = backbone
        self.transfer = transfer
        self.shared = {spec.name: spec.shape[1] for spec in tables}
        self.width = sum(self.shared.values())
        own = ParamSpec(OWN, (tables[0].shape[0], self.width), "item", "private", normal(deviation))
        self.params = (*backbone.params, own, *transfer.params)
        self.hidden = max(backbone.hidden, self.width)

    def look(self, params: Mapping[str, Tensor], tables: Mapping[str, Tensor], liked: Tensor) -> dict[str, Tensor]:
        shared = [tables[name] for name in self.shared]
        consensus = torch.cat(shared, dim=2) if len(shared) > 1 else shared[0]
        enhanced, own = self.transfer(params, consensus, tables[OWN], liked)
        return {ENHANCED: enhanced, OWN: own}

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        return self.scored_alone(params, rows[ENHANCED] + rows[OWN])

    def scored_alone(self, params: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        pieces = torch.split(rows, list(self.shared.values()), dim=2)
        return self.backbone.logits(params, dict(zip(self.shared, pieces, strict=True)))


def prototype(table: Tensor, liked: Tensor) -> Tensor:
    """(clients, d): the mean of the rows marked in `liked` (clients, n); zeros where none is."""
    weights = liked.to(table.dtype)
    return inner(table.mT, weights / weights.sum(dim=1, keepdim=True).clamp(min=1.0))


def _identity(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.eye(*shape, dtype=torch.float64)
