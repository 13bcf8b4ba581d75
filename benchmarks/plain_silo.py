"""FPPDM as one would write it at first: a module, a dense graph, autograd, torch's Adam; the oracle of its silo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class PlainFPPDM(nn.Module):
    """Two stacks of graph convolutions, layer by layer, on the dense normalised graph with loops."""

    def __init__(self, users: int, items: int, edges: Sequence[tuple[int, int]], dim: int, layers: int) -> None:
        super().__init__()
        self.users = users
        self.nodes = nn.Parameter(torch.empty(users + items, dim, dtype=torch.float64))
        shape = (layers, dim, dim)
        self.mean = nn.Parameter(torch.empty(shape, dtype=torch.float64))
        self.deviation = nn.Parameter(torch.empty(shape, dtype=torch.float64))
        graph = torch.eye(users + items, dtype=torch.float64)
        for user, item in edges:
            graph[user, users + item] = graph[users + item, user] = 1.0
        root = graph.sum(dim=1).rsqrt()
        self.graph = root[:, None] * graph * root

    def load(self, params: Mapping[str, Tensor]) -> None:
        layers = range(len(self.mean))
        with torch.no_grad():
            self.nodes.copy_(joined(params))
            for stack in ("mean", "deviation"):
                for layer in layers:
                    getattr(self, stack)[layer] = params[f"{stack}_{layer}"]

    def forward(self) -> tuple[Tensor, Tensor]:
        mean: Tensor = self.nodes
        deviation: Tensor = self.nodes
        for layer in range(len(self.mean)):
            mean = self.graph @ mean @ self.mean[layer]
            deviation = self.graph @ deviation @ self.deviation[layer]
        return mean, functional.softplus(deviation) + 1e-4


def joined(params: Mapping[str, Tensor]) -> Tensor:
    """The table of nodes, which confed keeps in blocks of columns."""
    return torch.cat([params[name] for name in sorted(params) if name.startswith("nodes_")], dim=1)


def train(
    model: PlainFPPDM,
    batches: Sequence[tuple[Tensor, Tensor]],
    learning_rate: float,
    alignment: float,
    target: Mapping[int, tuple[Tensor, Tensor]],
) -> None:
    """One round: `batches` of users and of items, the positive first; `target`: what the server sent about users."""
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for users, items in batches:
        mean, deviation = model()
        loss = torch.zeros((), dtype=torch.float64)
        for user, listed in zip(users.tolist(), items.tolist(), strict=True):
            distances = [
                (mean[user] - mean[model.users + item]).square().sum()
                + (deviation[user] - deviation[model.users + item]).square().sum()
                for item in listed
            ]
            loss = loss - torch.log_softmax(-torch.stack(distances), dim=0)[0] / len(users)
        distinct = sorted(set(users.tolist()))
        for user in [user for user in distinct if user in target]:
            away = (mean[user] - target[user][0]).square().sum() + (deviation[user] - target[user][1]).square().sum()
            loss = loss + alignment * away / len(distinct)
        adam.zero_grad()
        torch.autograd.backward(loss)
        adam.step()
