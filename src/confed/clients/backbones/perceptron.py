"""A network of one hidden layer on an item's row: MetaMF's client, to whom the server gives all of it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from confed.clients.backbones.base import Backbone, ParamSpec, inner
from confed.initial import zeros


class Perceptron(Backbone):
    """s_i = ReLU(V[i] W + b) · w + c. It begins with zeros: what a client has of it was made for it."""

    def __init__(self, items: int, width: int, hidden: int) -> None:
        self.params = (
            ParamSpec("items", (items, width), "item", "shared", zeros),
            ParamSpec("inner", (width, hidden), "net", "shared", zeros),
            ParamSpec("inner_bias", (hidden,), "net", "shared", zeros),
            ParamSpec("outer", (hidden,), "net", "shared", zeros),
            ParamSpec("outer_bias", (1,), "net", "shared", zeros),
        )
        self.hidden = max(width, hidden)

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        layer = torch.relu(rows["items"] @ params["inner"] + params["inner_bias"][:, None])
        return inner(layer, params["outer"]) + params["outer_bias"]
