"""A linear score function on item rows: PFedRec's client, and the controls without federation."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from confed.clients.backbones.base import Backbone, Bilinear, ParamSpec, Scope, inner
from confed.initial import normal, uniform, zeros


class LinearHead(Backbone):
    """s_i = w_u · V_u[i] + b_u. There is no user vector; w_u plays its part."""

    bilinear = Bilinear("weight", ("items",), ("bias",))

    def __init__(self, items: int, width: int, items_scope: Scope = "shared", deviation: float = 1.0) -> None:
        bound = width**-0.5
        self.params = (
            ParamSpec("weight", (width,), "head", "private", uniform(bound)),
            ParamSpec("bias", (1,), "head", "private", uniform(bound)),
            ParamSpec("items", (items, width), "item", items_scope, normal(deviation)),
        )

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        return inner(rows["items"], params["weight"]).add_(params["bias"])


class Scalar(Backbone):
    """s_i = V_u[i], one number: a client that cannot learn anything about an item but whether it was shown."""

    def __init__(self, items: int) -> None:
        self.params = (ParamSpec("items", (items, 1), "item", "private", zeros),)

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        return rows["items"][:, :, 0]
