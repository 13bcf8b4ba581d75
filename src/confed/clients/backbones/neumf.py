"""Neural collaborative filtering on a device (He et al. 2017): GMF, MLP, or both (NeuMF).

The first layer of the tower acts on [p_u ; q_i]; it is computed as W_p p_u + W_q q_i, so that scoring every item for
many clients with shared weights evaluates the item half once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from confed.clients.backbones.base import Backbone, ParamSpec, Scope, inner
from confed.initial import Initialiser, uniform

Variant = Literal["gmf", "mlp", "neumf"]


class NeuMF(Backbone):
    """s_i = h · [p^G ⊙ q^G_i ; z_L] + b, with z_0 = [p^M ; q^M_i] and z_l = ReLU(W_l z_{l−1} + c_l)."""

    def __init__(
        self,
        items: int,
        width: int,
        tower: Sequence[int],
        variant: Variant,
        embedding_init: Initialiser,
        nets: Scope = "shared",
        *,
        server_has_users: bool = False,
        one_start: bool = True,
    ) -> None:
        """`tower` holds the widths after the first layer's input, whose width is 2·`width`. Where the server has the
        users' vectors, these may begin apart.
        """
        self.tower = tuple(tower) if variant != "gmf" else ()
        self.has_gmf = variant != "mlp"
        self.has_mlp = variant != "gmf"
        specs: list[ParamSpec] = []
        for branch, present in (("gmf", self.has_gmf), ("mlp", self.has_mlp)):
            if present:
                scope: Scope = "shared" if server_has_users else "private"
                user = ParamSpec(f"{branch}_user", (width,), "user", scope, embedding_init)
                specs.append(replace(user, personal=server_has_users, one_start=one_start))
                specs.append(ParamSpec(f"{branch}_items", (items, width), "item", "shared", embedding_init))
        inputs = 2 * width
        for layer, outputs in enumerate(self.tower):
            bound = uniform(inputs**-0.5)
            specs.append(ParamSpec(f"weight_{layer}", (outputs, inputs), "net", nets, bound))
            specs.append(ParamSpec(f"bias_{layer}", (outputs,), "net", nets, bound))
            inputs = outputs
        head = (width if self.has_gmf else 0) + (self.tower[-1] if self.tower else 0)
        specs.append(ParamSpec("head", (head,), "net", nets, uniform(head**-0.5)))
        specs.append(ParamSpec("head_bias", (1,), "net", nets, uniform(head**-0.5)))
        self.params = tuple(specs)
        self.width = width
        self.hidden = max((width, *self.tower))

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        head, score = params["head"], params["head_bias"]
        if self.has_gmf:
            score = score + inner(rows["gmf_items"], params["gmf_user"] * head[:, : self.width])
            head = head[:, self.width :]
        if self.has_mlp:
            score = score + inner(self._tower(params, rows["mlp_items"]), head)
        return score

    def _tower(self, params: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        user_side, item_side = params["weight_0"][:, :, : self.width], params["weight_0"][:, :, self.width :]
        user_part = torch.matmul(user_side, params["mlp_user"][:, :, None])[:, None, :, 0]
        hidden = torch.relu(rows @ item_side.mT + user_part + params["bias_0"][:, None])
        for layer in range(1, len(self.tower)):
            hidden = torch.relu(hidden @ params[f"weight_{layer}"].mT + params[f"bias_{layer}"][:, None])
        return hidden
