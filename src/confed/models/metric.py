"""FPPDM's metric loss ℓ_R and its gradient, in one compiled pass over the pairs of a batch (Eq. 4).

    ℓ = mean_b [ D_b0 + log Σ_j exp(−D_bj) ],   D_bj = |x_b − y_bj|²

With p the softmax of −D over the denominator and w = e_0 − p, the gradients are 2 w_j (x − y_j) for the user and the
opposite for the item. Left to autograd the differences of all pairs are written out several times, half of a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.compiled import compiled


def metric_loss(users: Tensor, items: Tensor, user_of: Tensor, item_of: Tensor, *, whole: bool) -> Tensor:
    """ℓ_R of the points `users` and `items`: pair (b, j) is user_of[b] with item_of[b, j], the positive at j = 0.

    `whole`: the positive stands in the denominator too, else the negatives alone (D-36).
    """
    loss: Tensor = _MetricLoss.apply(users, items, user_of, item_of, whole)  # type: ignore[no-untyped-call]
    return loss


class _MetricLoss(torch.autograd.Function):
    """The gradient is found together with the value, and kept for the way back."""

    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, user_of: Tensor, item_of: Tensor, whole: bool) -> Tensor:
        ctx.gradients = torch.zeros_like(users), torch.zeros_like(items)
        points, pairs = (users.detach().numpy(), items.detach().numpy()), (user_of.numpy(), item_of.numpy())
        of_users, of_items = (gradient.numpy() for gradient in ctx.gradients)
        return users.new_tensor(_pass(*points, *pairs, of_users, of_items, 0 if whole else 1))

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        of_users, of_items = ctx.gradients
        return outer[0] * of_users, outer[0] * of_items, None, None, None


@compiled
def _pass(
    users: NDArray[np.floating],
    items: NDArray[np.floating],
    user_of: NDArray[np.int64],
    item_of: NDArray[np.int64],
    of_users: NDArray[np.floating],
    of_items: NDArray[np.floating],
    first: int,
) -> float:
    """The loss; its gradients are added to `of_users` and `of_items`. `first` is where the denominator begins."""
    batch, listed = item_of.shape
    width = users.shape[1]
    total = 0.0
    distances = np.empty(listed)
    for b in range(batch):
        user, user_gradient = users[user_of[b]], of_users[user_of[b]]
        nearest = np.inf
        for j in range(listed):
            item = items[item_of[b, j]]
            distance = user[0] * 0  # in the precision of the points
            for k in range(width):
                away = user[k] - item[k]
                distance += away * away
            distances[j] = distance
            if j >= first:
                nearest = min(nearest, distances[j])
        mass = 0.0
        for j in range(first, listed):
            mass += np.exp(nearest - distances[j])
        total += distances[0] - nearest + np.log(mass)
        for j in range(listed):
            weight = -np.exp(nearest - distances[j]) / mass if j >= first else 0.0
            if j == 0:
                weight += 1.0
            step = users.dtype.type(2.0 * weight / batch)
            item, item_gradient = items[item_of[b, j]], of_items[item_of[b, j]]
            for k in range(width):
                away = step * (user[k] - item[k])
                user_gradient[k] += away
                item_gradient[k] -= away
    return float(total / batch)
