"""A chunk of clients in local training: the batched mathematics of every cross-device method.

The cohort holds each client's parameters for one round, item tables shrunk to the rows the client touches. A loss is a
vector with one mean per client, so that one backward pass of its sum gives every client its own gradient. A phone is a
cohort of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from confed.clients.backbones import Backbone
from confed.clients.fused import fusable, train_fused
from confed.clients.objectives import Batch
from confed.clients.optim import OPTIMISERS, Optimiser, flatten_rows
from confed.clients.procedures import Procedure, Step
from confed.clients.sampling import LocalRows
from confed.clients.store import ClientStore
from confed.random import Stream
from confed.records import Download, TableRows, Upload, gather_rows


class Cohort:
    """Receive, train, then score and send."""

    def __init__(self, backbone: Backbone, store: ClientStore, download: Download, rows: LocalRows) -> None:
        self.backbone = backbone
        self.store = store
        self.download = download
        self.rows = rows
        self.clients = torch.from_numpy(rows.clients)
        self.table_of = download.table_of[self.clients]
        self.tables = {spec.name: self._receive_rows(spec.name) for spec in backbone.named(role="item")}
        private = [p.name for p in backbone.named(scope="private") if p.role != "item"]
        shared = [p.name for p in backbone.named(scope="shared") if p.role != "item"]
        self.params = store.read(private, self.clients) | {
            name: download.tables[name].index_select(0, self.table_of) for name in shared
        }

    def _receive_rows(self, name: str) -> Tensor:
        if name in self.download.tables:
            return gather_rows(self.download.tables[name], self.table_of, self.rows.touched)
        return self.store.read_rows(name, self.clients, self.rows.touched)

    def train(self, procedure: Procedure, stream: Stream) -> Tensor:
        """Run the local procedure; returns each client's mean loss over its last epoch's batches."""
        if self.backbone.bilinear and fusable(self.backbone, procedure):
            return train_fused(self.backbone.bilinear, self.params, self.tables, self.rows, procedure, stream)
        return self._train_batched(procedure, stream)

    def _train_batched(self, procedure: Procedure, stream: Stream) -> Tensor:
        optimisers = [OPTIMISERS[step.optimiser]() for step in procedure.steps]
        for epoch in range(procedure.epochs):
            loss = torch.zeros(len(self.clients), dtype=torch.float64)
            batches = torch.zeros(len(self.clients), dtype=torch.float64)
            for index, labels, weights in self.rows.batches(procedure.batch_size, epoch, stream):
                rows: dict[str, Tensor] = {}
                for step, optimiser in zip(procedure.steps, optimisers, strict=True):
                    value = self._step(step, optimiser, index, labels, weights, rows)
                loss[: len(value)] += value
                batches[: len(value)] += 1
        return loss / batches

    def _step(
        self,
        step: Step,
        optimiser: Optimiser,
        index: Tensor,
        labels: Tensor,
        weights: Tensor,
        looked_up: dict[str, Tensor],
    ) -> Tensor:
        """One step of the first k clients on the parameters named by `step`; the losses before it.

        `looked_up` holds the rows of this batch that an earlier step has looked up and left unchanged.
        """
        for name in self.tables.keys() - looked_up.keys():
            looked_up[name] = self._look_up(self.tables[name], index)
        params = {name: value[: len(index)] for name, value in self.params.items()}
        rows = {name: looked_up[name].detach() for name in self.tables}
        stepped = {name: (rows if name in rows else params)[name].requires_grad_() for name in step.rates}
        batch = Batch(self.backbone.logits(params, rows), labels, weights, params, rows)
        losses = torch.stack([term.value(batch) for term in step.terms]).sum(dim=0)
        gradients = torch.autograd.grad(losses.sum(), list(stepped.values()))
        with torch.no_grad():
            for (name, rate), gradient in zip(step.rates.items(), gradients, strict=True):
                own = rate[self.clients] if isinstance(rate, Tensor) else rate
                if name in self.tables:
                    optimiser.step_rows(name, self.tables[name], index, gradient, own)
                    del looked_up[name]
                else:
                    optimiser.step(name, self.params[name], gradient, own)
        return losses.detach()

    @staticmethod
    def _look_up(table: Tensor, index: Tensor) -> Tensor:
        flat_table, flat_index = flatten_rows(table, index)
        return flat_table.index_select(0, flat_index).view(*index.shape, -1)

    def keep_private(self) -> None:
        """Write what stays with the clients back into their store."""
        for spec in self.backbone.named(scope="private"):
            if spec.role == "item":
                self.store.write_rows(spec.name, self.clients, self.rows.touched, self.tables[spec.name])
            else:
                self.store.write({spec.name: self.params[spec.name]}, self.clients)

    def upload(self, names: Iterable[str]) -> Upload:
        """The tensors asked for, as they stand after training: shared parameters, or the number of `samples`."""
        return Upload(self.clients, {name: self._sent(name) for name in names})

    def _sent(self, name: str) -> Tensor | TableRows:
        if name == "samples":
            return torch.from_numpy(self.rows.lengths)
        if name not in self.download.tables:
            raise ValueError(f"{name!r} is private and cannot be uploaded")
        if name in self.params:
            return self.params[name]
        return TableRows(self.download.tables[name], self.table_of, self.rows.touched, self.tables[name])

    def scores(self) -> Tensor:
        """(clients, items) logits under the `local` view: own parameters after training, before the next download.

        Untouched items are scored with what was downloaded, touched ones with what became of them.
        """
        items = self.backbone.named(role="item")[0].shape[0]
        everything = item_rows(self.backbone, self.store, self.download, self.clients)
        logits = self.backbone.logits(self.params, everything)
        touched = self.backbone.logits(self.params, self.tables)
        padded = torch.cat([logits, logits.new_empty(len(logits), 1)], dim=1)
        return padded.scatter_(1, self.rows.touched, touched)[:, :items]


def item_rows(backbone: Backbone, store: ClientStore, download: Download, clients: Tensor) -> dict[str, Tensor]:
    """Every item table whole, (1, items, d) where all `clients` share one and (clients, items, d) otherwise."""
    rows: dict[str, Tensor] = {}
    for spec in backbone.named(role="item"):
        if spec.scope == "private":
            rows[spec.name] = store.tensors[spec.name].index_select(0, clients)
        else:
            rows[spec.name] = versions(download.tables[spec.name], download.table_of[clients])
    return rows


def global_scores(backbone: Backbone, store: ClientStore, download: Download, clients: Tensor) -> Tensor:
    """(clients, items) logits under the `global` view: shared parameters from the server, private from the client."""
    private = [p.name for p in backbone.named(scope="private") if p.role != "item"]
    shared = {
        p.name: versions(download.tables[p.name], download.table_of[clients])
        for p in backbone.named(scope="shared")
        if p.role != "item"
    }
    params: Mapping[str, Tensor] = store.read(private, clients) | shared
    return backbone.logits(params, item_rows(backbone, store, download, clients))


def versions(tables: Tensor, table_of: Tensor) -> Tensor:
    """Each client's version, or the single one with a client axis of 1, which broadcasts."""
    return tables if len(tables) == 1 else tables.index_select(0, table_of)
