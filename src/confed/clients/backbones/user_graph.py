"""A graph network around one user (FedPerGNN's client): its items, and others who have them too.

With e the vectors of users and items, e' those of others who have the client's item i, absent ones masked:

    h_i  = σ(W_I e_i + c_I)                          items of the client; the item that is scored has W_T, c_T
    n_ik = W_N e'_k,   α_ik = softmax_k LeakyReLU(a · [h_i ; n_ik])
    g_i  = W_G [Σ_k α_ik n_ik ; h_i]
    u    = σ(W_U e_u + c_U),   β_i = softmax_i LeakyReLU(b · [u ; g_i])
    u'   = W_O [Σ_i β_i h_i ; u],   s = w · [u' ; h_target] + c
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import leaky_relu

from confed.clients.backbones.base import Backbone, ParamSpec
from confed.compiled import compiled
from confed.initial import glorot, uniform, zeros

Floats = NDArray[np.floating]

NEIGHBOURS = "neighbours"
_SLOPE = 0.3
"""Of LeakyReLU below zero, as in the library of the published code."""


class UserGraph(Backbone):
    """`history` of the client's items are looked at, and `NEIGHBOURS` (clients, history, others, width) beside them:
    zeros where there is nobody. The items are the first by their numbers.
    """

    reshapes = True
    reads = (NEIGHBOURS,)

    def __init__(self, items: int, width: int, history: int) -> None:
        square, wide = (width, width), (width, 2 * width)
        draw = uniform(0.05)
        self.history = history
        self.hidden = 2 * width
        self.params = (
            ParamSpec("user", (width,), "user", "shared", draw, personal=True),
            ParamSpec("items", (items, width), "item", "shared", draw),
            *_layer("item", square),
            *_layer("target", square),
            *_layer("user", square),
            ParamSpec("neighbour_weight", square, "net", "shared", glorot),
            ParamSpec("neighbour_attention", wide[1:], "net", "shared", uniform((6.0 / (2 * width + 1)) ** 0.5)),
            ParamSpec("gathered_weight", wide, "net", "shared", glorot),
            ParamSpec("item_attention", wide[1:], "net", "shared", uniform((6.0 / (2 * width + 1)) ** 0.5)),
            ParamSpec("joined_weight", wide, "net", "shared", glorot),
            ParamSpec("head", wide[1:], "net", "shared", uniform((6.0 / (2 * width + 1)) ** 0.5)),
            ParamSpec("head_bias", (1,), "net", "shared", zeros),
        )

    def look(self, params: Mapping[str, Tensor], tables: Mapping[str, Tensor], liked: Tensor) -> dict[str, Tensor]:
        """One column: the scores themselves."""
        chosen = first_of(liked, self.history)
        present = liked.gather(1, chosen)
        table = tables["items"]
        of_each = table.expand(len(liked), -1, -1)
        own = of_each.gather(1, chosen[:, :, None].expand(-1, -1, table.shape[2]))
        user, targets = self.user(params, own, present), self.targets(params, table)
        return {"items": self.score(params, user, targets)[:, :, None]}

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        return rows["items"][:, :, 0]

    def user(self, params: Mapping[str, Tensor], own: Tensor, present: Tensor, dropped: Tensor | None = None) -> Tensor:
        """(clients, width): u' of clients with the items `own` (clients, n, width), where they are `present`.

        `dropped` (clients, width) is what dropout makes of u.
        """
        items = _applied(params, "item", own)
        others = params[NEIGHBOURS][:, : own.shape[1]]
        gathered = self._gathered(params, items, others)
        around = torch.cat([gathered, items], dim=2) @ params["gathered_weight"].mT
        user = _applied(params, "user", params["user"][:, None])[:, 0]
        user = user if dropped is None else user * dropped
        beside = user[:, None].expand_as(around)
        weights = _attention(torch.cat([beside, around], dim=2), params["item_attention"], present)
        joined = torch.cat([torch.bmm(weights[:, None], items)[:, 0], user], dim=1)
        return torch.matmul(params["joined_weight"], joined[:, :, None])[:, :, 0]

    @staticmethod
    def _gathered(params: Mapping[str, Tensor], items: Tensor, others: Tensor) -> Tensor:
        """(clients, n, width): for every item, the mean of those who have it too, by attention; zeros of nobody.

        a · [h ; W e] is a₁ · h + (Wᵀ a₂) · e, and Σ α W e is W Σ α e: no vector of others is ever multiplied by W.
        """
        clients, count, most, width = others.shape
        weight, attention = params["neighbour_weight"], params["neighbour_attention"]
        own, their = attention[:, :width], attention[:, width:]
        there = others.reshape(clients, count * most, width)
        seen = torch.matmul(there, torch.matmul(weight.mT, their[:, :, None])).view(clients, count, most)
        logits = leaky_relu(torch.matmul(items, own[:, :, None]) + seen, _SLOPE)
        weights = _softmax(logits, _somebody(others))
        mean = torch.matmul(weights[:, :, None], others)[:, :, 0]
        return mean @ weight.mT

    def targets(self, params: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        """h of items that are scored."""
        return _applied(params, "target", rows)

    def score(self, params: Mapping[str, Tensor], user: Tensor, targets: Tensor) -> Tensor:
        """(clients, n)"""
        head, width = params["head"], user.shape[1]
        own = (user * head[:, :width]).sum(dim=1, keepdim=True)
        return own + torch.matmul(targets, head[:, width:, None])[:, :, 0] + params["head_bias"]


def first_of(liked: Tensor, count: int) -> Tensor:
    """(clients, count): the places of each client's first marks, then of others."""
    return torch.sort(liked.byte(), dim=1, descending=True, stable=True).indices[:, :count]


def _layer(name: str, shape: tuple[int, int]) -> tuple[ParamSpec, ParamSpec]:
    return (
        ParamSpec(f"{name}_weight", shape, "net", "shared", glorot),
        ParamSpec(f"{name}_bias", shape[:1], "net", "shared", zeros),
    )


def _somebody(others: Tensor) -> Tensor:
    """(clients, n, m): where the vectors (clients, n, m, width) are not 0."""
    found = others.new_empty(others.shape[:3], dtype=torch.bool)
    _find_somebody(others.numpy(), found.numpy())
    return found


@compiled
def _find_somebody(others: Floats, found: NDArray[np.bool_]) -> None:
    """Looks no further than to the first number that tells; torch's `any` reads them all."""
    for client in range(found.shape[0]):
        for item in range(found.shape[1]):
            for other in range(found.shape[2]):
                found[client, item, other] = False
                for number in others[client, item, other]:
                    if number != 0.0:
                        found[client, item, other] = True
                        break


def _applied(params: Mapping[str, Tensor], name: str, rows: Tensor) -> Tensor:
    return torch.sigmoid(rows @ params[f"{name}_weight"].mT + params[f"{name}_bias"][:, None])


def _attention(rows: Tensor, vector: Tensor, present: Tensor) -> Tensor:
    return _softmax(leaky_relu(torch.matmul(rows, vector[:, :, None])[:, :, 0], _SLOPE), present)


def _softmax(logits: Tensor, present: Tensor) -> Tensor:
    """Over the last axis, of those who are present; zeros where nobody is."""
    shifted = logits.masked_fill(~present, -torch.inf)
    most = shifted.amax(dim=-1, keepdim=True).detach()
    parts = torch.exp(shifted - torch.where(torch.isfinite(most), most, 0.0))
    return parts / parts.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(parts.dtype).tiny)
