"""How a model that knows many users at once hands their scores to the evaluator: some users after others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

Scorer = Callable[[Tensor], Tensor]
"""From user numbers to their (users, items) scores."""

_SCORE_VALUES = 1 << 22
"""Intermediate values of a scoring pass."""


class Card(Protocol):
    """Whatever takes scores: an evaluator's scorecard."""

    clients: Tensor
    """The users it wants scored."""

    def add(self, clients: Tensor, logits: Tensor) -> None: ...


def dot_scorer(users: Tensor, items: Tensor) -> Scorer:
    """s_ui = users[u] · items[i]."""
    columns = items.T

    def score(clients: Tensor) -> Tensor:
        return users.index_select(0, clients) @ columns

    return score


def fill(card: Card, scorer: Scorer, values: int) -> None:
    """Score whom the card asks for; no (users, items) matrix exists. `values`: most of them in between for a user."""
    for clients in torch.split(card.clients, max(_SCORE_VALUES // values, 1)):
        card.add(clients, scorer(clients))
