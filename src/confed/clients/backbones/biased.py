"""Matrix factorisation with biases on a device: FedeRank's client, and FedRecon's, whose own part may be forgotten."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from confed.clients.backbones.base import Backbone, Bilinear, ParamSpec, Renewal, inner
from confed.initial import normal, uniform, zeros


class OffsetDot(Backbone):
    """s_i = p_u · V[i] + b_i."""

    bilinear = Bilinear("user", ("items",), offset="item_bias")

    def __init__(self, items: int, width: int, deviation: float) -> None:
        draw = normal(deviation)
        self.params = (
            ParamSpec("user", (width,), "user", "private", draw),
            ParamSpec("items", (items, width), "item", "shared", draw),
            ParamSpec("item_bias", (items, 1), "item", "shared", draw),
        )

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        return inner(rows["items"], params["user"]) + rows["item_bias"][:, :, 0]


class BiasedDot(Backbone):
    """s_i = p_u · V[i] + b_i + b_u + μ. What is the client's own, p_u and b_u, is drawn anew by a `renewal`."""

    bilinear = Bilinear("user", ("items",), ("user_bias", "mean"), "item_bias")

    def __init__(self, items: int, width: int, renewal: Renewal) -> None:
        draw = uniform(renewal.bound)
        self.params = (
            ParamSpec("user", (width,), "user", "private", draw, renewal=renewal),
            ParamSpec("user_bias", (1,), "user", "private", draw, renewal=renewal),
            ParamSpec("items", (items, width), "item", "shared", draw),
            ParamSpec("item_bias", (items, 1), "item", "shared", zeros),
            ParamSpec("mean", (1,), "head", "shared", zeros),
        )

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        found = inner(rows["items"], params["user"]) + rows["item_bias"][:, :, 0]
        return found + params["user_bias"] + params["mean"]
