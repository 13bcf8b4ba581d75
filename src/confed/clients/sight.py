"""The tables of a chunk of clients as their backbone looks at them, and the way back for gradients."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from confed.clients.backbones import Backbone


class Sight:
    """What `backbone.look` makes of parameters and tables at one moment.

    Scores and terms are differentiated by what they see, and their gradients are pulled through this map together, once
    a step.
    """

    def __init__(
        self, backbone: Backbone, params: Mapping[str, Tensor], tables: Mapping[str, Tensor], liked: Tensor
    ) -> None:
        self._held = {name: value.detach().requires_grad_() for name, value in {**params, **tables}.items()}
        seen = backbone.look(
            {name: self._held[name] for name in params}, {name: self._held[name] for name in tables}, liked
        )
        self._seen = seen
        self.tables = {name: table.detach() for name, table in seen.items()}

    def pull(self, gradients: Mapping[str, Tensor], wanted: list[str]) -> dict[str, Tensor]:
        """Gradients by the parameters and tables `wanted`, as far as the sight depends on them."""
        found = torch.autograd.grad(
            [self._seen[name] for name in gradients],
            [self._held[name] for name in wanted],
            list(gradients.values()),
            allow_unused=True,
            retain_graph=False,
        )
        return {name: gradient for name, gradient in zip(wanted, found, strict=True) if gradient is not None}
