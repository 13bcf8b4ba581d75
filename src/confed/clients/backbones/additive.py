"""Additive personalisation: a shared item table and the client's own, added up. FedRAP's client."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from confed.clients.backbones.base import Backbone, Bilinear, ParamSpec, inner
from confed.initial import normal, uniform


class Additive(Backbone):
    """s_i = w_u · (C[i] + D_u[i]) + b_u: `items` is C, `own` is D_u, which never leaves and is never replaced."""

    bilinear = Bilinear("weight", ("items", "own"), ("bias",))
    views = ("items", "own")

    def __init__(self, items: int, width: int, deviation: float) -> None:
        bound = width**-0.5
        self.params = (
            ParamSpec("weight", (width,), "head", "private", uniform(bound)),
            ParamSpec("bias", (1,), "head", "private", uniform(bound)),
            ParamSpec("items", (items, width), "item", "shared", normal(deviation)),
            ParamSpec("own", (items, width), "item", "private", normal(deviation)),
        )

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        weight = params["weight"]
        return (inner(rows["items"], weight) + inner(rows["own"], weight)).add_(params["bias"])

    def scored_alone(self, params: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        return inner(rows, params["weight"]) + params["bias"]
