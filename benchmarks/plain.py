"""The oracle: federated recommendation as it is usually written.

A module, an optimiser and a loop over batches per client, one client after another, whole item tables copied for each.
Nothing here is clever, on purpose: fed with the same rows it must give the same parameters as the cohort code
(tests/oracle.py), and it is what speed is compared with, so that the comparison cannot be rigged.
It shares with the package only what defines the task: the sampled rows, their order and the initial values.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from confed.clients.sampling import LocalRows
from confed.messages.agreement import MOST_ROWS
from confed.random import Stream

State = dict[str, Tensor]


class PlainLinear(nn.Module):
    """PFedRec's client."""

    def __init__(self, items: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(items, dim)
        self.affine = nn.Linear(dim, 1)

    def score(self, rows: Tensor) -> Tensor:
        logit: Tensor = self.affine(rows)[:, 0]
        return logit

    def forward(self, item: Tensor) -> Tensor:
        return self.score(self.embedding(item))


class PlainDot(nn.Module):
    """FedMF's client."""

    def __init__(self, items: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(items, dim)
        self.user = nn.Parameter(torch.zeros(dim))

    def score(self, rows: Tensor) -> Tensor:
        logit: Tensor = rows @ self.user
        return logit

    def forward(self, item: Tensor) -> Tensor:
        return self.score(self.embedding(item))


class PlainBiased(PlainDot):
    """FedRecon's client."""

    def __init__(self, items: int, dim: int) -> None:
        super().__init__(items, dim)
        self.offset = nn.Embedding(items, 1)
        self.bias = nn.Parameter(torch.zeros(1))
        self.mean = nn.Parameter(torch.zeros(1))

    def forward(self, item: Tensor) -> Tensor:
        logit: Tensor = super().forward(item) + self.offset(item)[:, 0] + self.bias + self.mean
        return logit


class PlainAdditive(nn.Module):
    """FedRAP's client."""

    def __init__(self, items: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(items, dim)
        self.personal = nn.Embedding(items, dim)
        self.affine = nn.Linear(dim, 1)

    def forward(self, item: Tensor) -> Tensor:
        logit: Tensor = self.affine(self.embedding(item) + self.personal(item))[:, 0]
        return logit


class PlainDual(nn.Module):
    """Fed3CR's client: `inner` scores with the sum of its item table, reshaped, and a personal one.

    `inner` has its table in `embedding` and scores rows of it with `score`. The transfer matrix is generated from the
    means of both tables over the `positives`, which are set before training; `seen` keeps what the last score was made
    from, for the terms.
    """

    def __init__(
        self,
        inner: PlainLinear | PlainDot,
        items: int,
        dim: int,
        layers: int,
        alpha: float,
        kind: str = "ace",
        *,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.personal = nn.Embedding(items, dim)
        self.alpha, self.kind, self.residual = alpha, kind, residual
        widths = [2 ** (number + 1) * dim for number in range(layers)] + [dim * dim]
        pairs = itertools.pairwise(widths) if kind == "ace" else []
        self.generator = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.transfer = nn.Parameter(torch.eye(dim)) if kind in ("consensus", "unified") else None
        self.positives = torch.tensor([], dtype=torch.long)
        self.seen: tuple[Tensor, Tensor] | None = None

    def views(self) -> tuple[Tensor, Tensor]:
        """Both tables as the client looks at them."""
        shared, own = self.inner.embedding.weight, self.personal.weight
        if self.kind == "off":
            return shared, own
        if self.transfer is not None:
            return shared @ self.transfer.T, own @ self.transfer.T if self.kind == "unified" else own
        hidden = torch.cat([shared[self.positives].mean(dim=0), own[self.positives].mean(dim=0)])
        for number, layer in enumerate(self.generator):
            hidden = layer(torch.relu(hidden) if number else hidden)
        matrix = self.alpha * hidden.view(shared.shape[1], shared.shape[1])
        if self.residual:
            matrix = matrix + torch.eye(len(matrix), dtype=matrix.dtype)
        return shared @ matrix.T, own

    def forward(self, item: Tensor) -> Tensor:
        self.seen = enhanced, own = self.views()
        return self.inner.score(enhanced[item] + own[item])


def list_consistency(enhanced: Tensor, own: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """Fed3CR's L_a as it is read off the paper, with a softmax."""
    logs = [
        torch.log_softmax(nn.functional.cosine_similarity(t[positives].mean(dim=0)[None], t) / temperature, dim=0)
        for t in (enhanced, own)
    ]
    return -0.5 * (logs[1].exp() * logs[0]).sum() - 0.5 * (logs[0].exp() * logs[1]).sum()


def orthogonality(enhanced: Tensor, own: Tensor) -> Tensor:
    """Fed3CR's L_o, with the correlation matrix divided by the number of items."""
    return (enhanced.T @ own / len(own)).square().sum() / own.shape[1]


class PlainNeuMF(nn.Module):
    """FedNCF's client."""

    def __init__(self, items: int, dim: int, tower: Iterable[int]) -> None:
        super().__init__()
        self.gmf_items = nn.Embedding(items, dim)
        self.mlp_items = nn.Embedding(items, dim)
        self.gmf_user = nn.Parameter(torch.zeros(dim))
        self.mlp_user = nn.Parameter(torch.zeros(dim))
        widths = [2 * dim, *tower]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.output = nn.Linear(dim + widths[-1], 1)

    def forward(self, item: Tensor) -> Tensor:
        gmf = self.gmf_user * self.gmf_items(item)
        hidden = torch.cat([self.mlp_user.expand(len(item), -1), self.mlp_items(item)], dim=1)
        for layer in self.layers:
            hidden = torch.relu(layer(hidden))
        logit: Tensor = self.output(torch.cat([gmf, hidden], dim=1))[:, 0]
        return logit


@dataclass(frozen=True)
class PlainStep:
    """One optimiser: the names of the parameters it steps (by prefix), its kind and learning rate."""

    rates: dict[str, float]
    kind: str = "sgd"

    def optimiser(self, model: nn.Module, weight_decay: float = 0.0) -> torch.optim.Optimizer:
        groups = [
            {"params": [p for n, p in model.named_parameters() if n.startswith(prefix)], "lr": rate}
            for prefix, rate in self.rates.items()
        ]
        return torch.optim.Adam(groups) if self.kind == "adam" else torch.optim.SGD(groups, weight_decay=weight_decay)


class ClientRows(Dataset[tuple[Tensor, Tensor]]):
    """A client's rows, one by one, as a loader wants them."""

    def __init__(self, items: Tensor, labels: Tensor) -> None:
        self.items, self.labels = items, labels

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.items[row], self.labels[row]


@dataclass(frozen=True)
class PlainFederation:
    """Local training as the published code does it: a deep copy, optimisers and a data loader for every client."""

    model: nn.Module
    steps: tuple[PlainStep, ...]
    epochs: int
    batch_size: int
    penalty: Callable[[nn.Module, Tensor], Tensor] | None = None
    """Of the model and the batch's items; added to the loss of every step, as published code does."""
    weight_decay: float = 0.0
    batch_decay: float = 1.0
    tolerance: float | None = None
    """A client stops when its loss changes by less than this part from one epoch to the next."""

    def train_client(self, state: State, items: Tensor, labels: Tensor, orders: list[Tensor]) -> nn.Module:
        """Train from `state` on one client's rows; `orders` holds the shuffled row numbers of every epoch."""
        model = copy.deepcopy(self.model)
        model.load_state_dict(state)
        if hasattr(model, "positives"):
            model.positives = items[labels > 0]
        optimisers = [step.optimiser(model, self.weight_decay) for step in self.steps]
        schedules = [torch.optim.lr_scheduler.ExponentialLR(optimiser, self.batch_decay) for optimiser in optimisers]
        loss_function = nn.BCEWithLogitsLoss()
        previous = None
        for order in orders:
            losses = []
            loader = DataLoader(ClientRows(items, labels), self.batch_size, sampler=order.tolist())
            for batch_items, batch_labels in loader:
                for optimiser in optimisers:
                    model.zero_grad()
                    loss = loss_function(model(batch_items), batch_labels)
                    if self.penalty:
                        loss = loss + self.penalty(model, batch_items)
                    loss.backward()
                    optimiser.step()
                losses.append(loss.item())
                for schedule in schedules:
                    schedule.step()
            mean = sum(losses) / len(losses)
            if self.tolerance and previous and abs(mean - previous) < self.tolerance * abs(previous):
                break
            previous = mean
        return model


def supervised_contrast(rows: Tensor, membership: Tensor, temperature: float) -> Tensor:
    """CoFedRec's contrastive term in the style of its published code, without the 1e-6 in its denominators."""
    unit = nn.functional.normalize(rows, dim=1)
    logits = unit @ unit.T / temperature
    logits = logits - logits.max(dim=1, keepdim=True).values.detach()
    others = 1.0 - torch.eye(len(rows), dtype=rows.dtype)
    positives = (membership[:, None] == membership[None, :]).to(rows.dtype) * others
    log_probability = logits - torch.log((torch.exp(logits) * others).sum(dim=1, keepdim=True))
    per_anchor = (positives * log_probability).sum(dim=1) / positives.sum(dim=1).clamp(min=1.0)
    return -(temperature / 0.5) * per_anchor.mean()


def mean(before: Tensor, after: list[Tensor]) -> Tensor:
    """FedAvg without weights."""
    return torch.stack(after).mean(dim=0)


def weighted_mean(before: Tensor, after: list[Tensor], samples: list[int]) -> Tensor:
    """FedAvg weighted by the clients' numbers of rows."""
    total = sum(samples)
    return torch.stack([n / total * value for n, value in zip(samples, after, strict=True)]).sum(dim=0)


def mean_over_holders(before: Tensor, after: list[Tensor], held: list[set[int]]) -> Tensor:
    """Each item row averaged over the clients that trained on it; unchanged if nobody did."""
    merged = before.clone()
    for item in range(len(before)):
        holders = [value[item] for value, items in zip(after, held, strict=True) if item in items]
        if holders:
            merged[item] = torch.stack(holders).mean(dim=0)
    return merged


def sum_of_changes(before: Tensor, after: list[Tensor]) -> Tensor:
    """The server adds what every client changed."""
    return before + torch.stack([value - before for value in after]).sum(dim=0)


def client_rows(rows: LocalRows, position: int) -> tuple[Tensor, Tensor]:
    """Item ids and labels of one client of a chunk, without padding: the engine's draw, for equality tests."""
    length = int(rows.lengths[position])
    return rows.touched[position][rows.local[position, :length]], rows.labels[position, :length]


def epoch_orders(rows: LocalRows, position: int, epochs: int, stream: Stream) -> list[Tensor]:
    """The order of one client's rows in every epoch, as the engine draws it."""
    client, length = rows.clients[position : position + 1], rows.lengths[position : position + 1]
    return [torch.from_numpy(stream.shuffled(client, length, base=epoch * MOST_ROWS)[0]) for epoch in range(epochs)]


def sample_rows(positives: list[int], pool: list[int], negatives: int, rng: random.Random) -> tuple[Tensor, Tensor]:
    """A client's rows, drawn in the published way: for every positive, distinct items of its pool."""
    items: list[int] = []
    labels: list[float] = []
    for positive in positives:
        items.append(positive)
        labels.append(1.0)
        for negative in rng.sample(pool, negatives):
            items.append(negative)
            labels.append(0.0)
    return torch.tensor(items), torch.tensor(labels)


@torch.no_grad()
def rank_client(model: nn.Module, held_out: int, candidates: Tensor) -> int:
    """The rank of a client's held-out item among its candidates, ties lost."""
    scores = torch.sigmoid(model(torch.cat([candidates, torch.tensor([held_out])])))
    return int((scores[:-1] >= scores[-1]).sum()) + 1
