"""A chunk of clients in local training: the batched mathematics of every cross-device method.

The cohort holds each client's parameters for one round, item tables shrunk to the rows the client touches. A loss is a
vector with one mean per client, so that one backward pass of its sum gives every client its own gradient. A phone is a
cohort of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.backbones import Backbone, DualTable, NeuMF
from confed.clients.fused import fusable, score_fused, train_fused
from confed.clients.fused_dual import fusable_dual, train_dual
from confed.clients.fused_tower import fusable_tower, train_tower
from confed.clients.objectives import Batch, Whole
from confed.clients.optim import Optimiser, Rate, flatten_rows, optimiser, shaped
from confed.clients.pace import Pace
from confed.clients.procedures import Phase, Procedure, Step, Visit
from confed.clients.sampling import LocalRows, marked
from confed.clients.sight import Sight
from confed.clients.standing import item_rows, item_table
from confed.clients.store import ClientStore
from confed.compiled import compiled
from confed.messages import Download, HeldTables, Pull, PulledTables, Sent, TableRows, Upload, add_rows, gather_rows
from confed.messages.agreement import MOST_ROWS
from confed.random import Stream

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]

ALL = slice(None)


class Cohort:
    """Receive, train, then score and send."""

    def __init__(
        self,
        backbone: Backbone,
        store: ClientStore,
        download: Download,
        rows: LocalRows,
        fresh: Mapping[str, Tensor] | None = None,
        seed: int = 0,
    ) -> None:
        """`fresh` are parameters that begin anew."""
        self.seed = seed
        self.backbone = backbone
        self.store = store
        self.download = download
        self.rows = rows
        self.clients = torch.from_numpy(rows.clients)
        self.table_of = download.table_of[self.clients]
        self.tables = {spec.name: self._receive_table(spec.name) for spec in backbone.named(role="item")}
        self.round = 1
        self.scale: dict[str, Tensor] = {}
        """By table, (clients,): what decay has made of the rows that are not here."""
        self.pulls: dict[str, Pull] = {}
        """By table, what moves every row of it, also those that are not here."""
        self.values: dict[str, Tensor] = {}
        """By term, (clients,): what training gave."""
        self.steepest: dict[str, Tensor] = {}
        """By dense term, (clients,): the largest entry of any gradient of this round; fused loops leave it empty."""
        fresh = fresh or {}
        kept = [p.name for p in backbone.named(kept=True) if p.role != "item" and p.name not in fresh]
        shared = [p.name for p in backbone.named(kept=False, scope="shared", personal=False) if p.role != "item"]
        self.own = download.own_to(self.clients)
        """By name, what the server sent to each of the clients alone."""
        self.params = {
            **store.read(kept, self.clients),
            **{name: download.tables[name].index_select(0, self.table_of) for name in shared},
            **{name: self.own[name].clone() for name in backbone.own_names},
            **fresh,
        }
        self.samples = rows.lengths
        """(clients,): rows of the last phase, by which what a client sends is weighed."""

    def _receive_table(self, name: str) -> Tensor:
        if self.rows.whole:
            whole = item_table(name, self.store, self.download, self.clients)
            return whole if len(whole) == len(self.clients) > 1 else whole.expand(len(self.clients), -1, -1).clone()
        if name in self.download.tables:
            return gather_rows(self.download.tables[name], self.table_of, self.rows.touched)
        return self.store.read_rows(name, self.clients, self.rows.touched)

    @cached_property
    def liked(self) -> Tensor:
        """(clients, table rows): which rows are those of the client's training positives."""
        return self.rows.liked()

    def train(self, procedure: Procedure, stream: Stream, number: int = 1) -> dict[str, Tensor]:
        """Run the local procedure of round `number`.

        Returns, by term, each client's mean value over the batches of the last epoch it trained.
        """
        self.round = number
        for place, phase in enumerate(procedure.at(number)):
            rows = self.rows.part(phase.part, stream.child("halves"))
            own = stream.child(f"phase {place}") if place else stream
            if isinstance(phase, Visit):
                self.values |= phase.train(self, rows, own)
            else:
                self.values |= self._trained(phase, rows, own, number)
            self.samples = rows.lengths
        return self.values

    def _trained(self, phase: Phase, rows: LocalRows, stream: Stream, number: int) -> dict[str, Tensor]:
        values: dict[str, Tensor] = {}
        if phase.dense and phase.schedule == "once-per-round":
            if self.backbone.reshapes:
                raise ValueError("terms on tables that are looked at anew in every step cannot be taken once a round")
            values = self._step_dense_once(phase, rows, stream)
            phase = phase.without_dense()
        if self.backbone.bilinear and fusable(self.backbone, phase):
            told = (self.backbone.bilinear, self.params, self.tables, rows, phase, stream, number)
            found, scale = train_fused(*told)
            self._scale(scale)
            return values | found
        if isinstance(self.backbone, DualTable) and fusable_dual(self.backbone, phase):
            step = phase.steps[0]
            rates = {name: self._rate(step, name) for name in step.rates}
            return train_dual(self.backbone, self.params, self.tables, rows, self.liked, phase, rates, stream)
        if isinstance(self.backbone, NeuMF) and fusable_tower(self.backbone, phase):
            rate = self._rate(phase.steps[0], self.backbone.params[0].name)
            return values | train_tower(self.backbone, self.params, self.tables, rows, phase, rate, stream)
        return values | self._train_batched(phase, rows, stream)

    def _step_dense_once(self, phase: Phase, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        """One step of the dense terms for all the steps the client is about to take, from where the round begins."""
        found: dict[str, Tensor] = {}
        steps = torch.from_numpy(rows.steps(phase.batch_size, phase.epochs))
        for step in phase.steps:
            values, gradients = self._dense(step, self.tables, stream, 0)
            found |= values
            for name, gradient in gradients.items():
                rates = steps.to(gradient.dtype) * self._rate(step, name)
                self.tables[name] -= rates[:, None, None] * gradient
        return found

    def _dense(
        self, step: Step, tables: Mapping[str, Tensor], stream: Stream, taken: int
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Values by term, and the summed gradient by table, of the first clients, whose `tables` are given; step
        `taken` is their first only where it is 0.
        """
        clients = len(next(iter(tables.values())))
        nobody = torch.full((clients,), -1)
        alike = self.download.alike
        whole = Whole(
            tables,
            self.download.side,
            self.liked[:clients],
            nobody if alike is None or taken else alike[self.clients[:clients]],
            stream.child("dense"),
            taken,
            self.round,
            {name: of[:clients] for name, of in self.own.items()},
        )
        values: dict[str, Tensor] = {}
        total: dict[str, Tensor] = {}
        for term in step.dense:
            values[term.name], gradients = term.gradients(whole)
            for name, gradient in gradients.items():
                self._note_size(term.name, gradient)
                total[name] = total[name] + gradient if name in total else gradient
        return values, total

    def _note_size(self, term: str, gradient: Tensor) -> None:
        known = self.steepest.setdefault(term, torch.zeros(len(self.clients), dtype=torch.float64))[: len(gradient)]
        torch.maximum(known, gradient.abs().amax(dim=(1, 2)).double(), out=known)

    def _train_batched(self, phase: Phase, rows: LocalRows, stream: Stream) -> dict[str, Tensor]:
        optimisers = [optimiser(step.optimiser, phase.weight_decay) for step in phase.steps]
        pace = Pace(len(self.clients), phase)
        found: dict[str, Tensor] = {}
        for epoch in range(phase.epochs):
            means = self._epoch(phase, rows, optimisers, pace, epoch, stream)
            for name, mean in means.items():
                known = found.setdefault(name, mean)
                known.copy_(torch.where(pace.running, mean, known))
            if pace.finish_epoch(torch.stack(list(means.values())).sum(dim=0)):
                break
        return found

    def _epoch(
        self, phase: Phase, rows: LocalRows, optimisers: list[Optimiser], pace: Pace, epoch: int, stream: Stream
    ) -> dict[str, Tensor]:
        """One pass over the rows; the means of the terms over each client's batches."""
        sums: dict[str, Tensor] = {}
        batches = torch.zeros(len(self.clients), dtype=torch.float64)
        for number, (index, labels, weights) in enumerate(rows.batches(phase.batch_size, epoch, stream)):
            # Of the client's own: it must not depend on how many batches others in the chunk have.
            taken = epoch * MOST_ROWS + number
            looked_up: dict[str, Tensor] = {}
            found: dict[str, Tensor] = {}
            for step, own in zip(phase.steps, optimisers, strict=True):
                rates = {name: pace.rate(self._rate(step, name), len(index)) for name in step.rates}
                if self.backbone.reshapes:
                    found |= self._step_through(step, own, rates, index, labels, weights, stream, taken)
                else:
                    tables = {name: table[: len(index)] for name, table in self.tables.items()}
                    values, gradients = self._dense(step, tables, stream, taken) if step.dense else ({}, {})
                    found |= values | self._step(step, own, rates, index, labels, weights, looked_up)
                    for name, gradient in gradients.items():
                        self.tables[name][: len(index)] -= shaped(rates[name], gradient) * gradient
                        looked_up.pop(name, None)
                if phase.weight_decay:
                    self._decay(rates, phase.weight_decay, len(index))
            pace.finish_batch(len(index))
            for name, value in found.items():
                sums.setdefault(name, torch.zeros_like(batches))[: len(value)] += value
            batches[: len(index)] += 1
        return {name: total / batches for name, total in sums.items()}

    def _decay(self, rates: Mapping[str, Rate], decay: float, clients: int) -> None:
        """Remember what a step's decay makes of the rows that are not here."""
        for name in rates.keys() & self.tables.keys():
            left = torch.ones(len(self.clients), dtype=torch.float64)
            left[:clients] -= decay * torch.as_tensor(rates[name], dtype=torch.float64)
            self._scale({name: left})

    def _scale(self, left: Mapping[str, Tensor]) -> None:
        for name, factors in left.items():
            self.scale[name] = self.scale[name] * factors if name in self.scale else factors

    def _rate(self, step: Step, name: str) -> Rate:
        """The rate of this cohort's clients, in its order where it is one for each."""
        rate = step.rates[name]
        return rate[self.clients] if isinstance(rate, Tensor) else rate

    def _step(
        self,
        step: Step,
        optimiser: Optimiser,
        rates: Mapping[str, Rate],
        index: Tensor,
        labels: Tensor,
        weights: Tensor,
        looked_up: dict[str, Tensor],
    ) -> dict[str, Tensor]:
        """One step of the first k clients on the parameters named by `step`; the terms' values before it.

        `looked_up` holds the rows of this batch that an earlier step has looked up and left unchanged.
        """
        for name in self.tables.keys() - looked_up.keys():
            looked_up[name] = self._look_up(self.tables[name], index)
        params = {name: value[: len(index)] for name, value in self.params.items()}
        rows = {name: looked_up[name].detach() for name in self.tables}
        stepped = {name: (rows if name in rows else params)[name].requires_grad_() for name in step.rates}
        batch = Batch(self.backbone.logits(params, rows), labels, weights, params, rows, self.round)
        values = {term.name: term.value(batch) for term in step.terms}
        loss = torch.stack([value.sum() for value in values.values()]).sum()
        gradients = torch.autograd.grad(loss, list(stepped.values()))
        with torch.no_grad():
            for name, gradient in zip(stepped, gradients, strict=True):
                if name in self.tables:
                    optimiser.step_rows(name, self.tables[name], index, gradient, rates[name])
                    del looked_up[name]
                else:
                    optimiser.step(name, self.params[name], gradient, rates[name])
        return {name: value.detach() for name, value in values.items()}

    def _step_through(
        self,
        step: Step,
        optimiser: Optimiser,
        rates: Mapping[str, Rate],
        index: Tensor,
        labels: Tensor,
        weights: Tensor,
        stream: Stream,
        taken: int,
    ) -> dict[str, Tensor]:
        """`_step`, and dense terms with it, where the backbone reshapes its tables before it scores with them.

        Scores and dense terms are differentiated by the tables as seen, and these by the tables as held: one gradient
        of every parameter and whole table, whatever it comes from. Terms on batches see rows as held.
        """
        clients = len(index)
        params = {name: value[:clients] for name, value in self.params.items()}
        tables = {name: table[:clients] for name, table in self.tables.items()}
        sight = Sight(self.backbone, params, tables, self.liked[:clients])
        seen = {name: self._look_up(table, index).requires_grad_() for name, table in sight.tables.items()}
        held = {name: self._look_up(table, index).requires_grad_() for name, table in tables.items()}
        params = {name: value.detach().requires_grad_() for name, value in params.items()}
        batch = Batch(self.backbone.logits(params, seen), labels, weights, params, held, self.round)
        values = {term.name: term.value(batch) for term in step.terms}
        loss = torch.stack([value.sum() for value in values.values()]).sum()
        stepped = [{name: v for name, v in leaves.items() if name in step.rates} for leaves in (held, params)]
        by_seen, by_held, direct = _gradients(loss, seen, *stepped)
        with torch.no_grad():
            gradients = {name: self._spread(sight.tables[name], index, rows) for name, rows in by_seen.items()}
            if step.dense:
                more, dense = self._dense(step, sight.tables, stream, taken)
                values |= more
                for name, gradient in dense.items():
                    gradients[name] = gradients[name].add_(gradient) if name in gradients else gradient
        pulled = sight.pull(gradients, list(step.rates)) if gradients else {}
        for name, rows in by_held.items():
            spread = self._spread(tables[name], index, rows)
            pulled[name] = pulled[name] + spread if name in pulled else spread
        for name, gradient in direct.items():
            pulled[name] = pulled[name] + gradient if name in pulled else gradient
        with torch.no_grad():
            for name, gradient in pulled.items():
                optimiser.step(name, (self.tables if name in tables else self.params)[name], gradient, rates[name])
        return {name: value.detach() for name, value in values.items()}

    @staticmethod
    def _spread(table: Tensor, index: Tensor, rows: Tensor) -> Tensor:
        """The gradient of a whole table, given that of the rows looked up."""
        whole = torch.zeros_like(table)
        flat, flat_index = flatten_rows(whole, index)
        add_rows(flat, flat_index, rows)
        return whole

    @staticmethod
    def _look_up(table: Tensor, index: Tensor) -> Tensor:
        flat_table, flat_index = flatten_rows(table, index)
        return flat_table.index_select(0, flat_index).view(*index.shape, -1)

    def keep(self) -> None:
        """Write what clients remember between rounds back into their store."""
        for spec in self.backbone.named(kept=True):
            if spec.role == "item" and not self.rows.whole:
                if spec.name in self.scale:
                    self.store.scale(spec.name, self.clients, self.scale[spec.name])
                self.store.write_rows(spec.name, self.clients, self.rows.touched, self.tables[spec.name])
            else:
                value = self.tables[spec.name] if spec.role == "item" else self.params[spec.name]
                self.store.write({spec.name: value}, self.clients)

    def upload(self, names: Iterable[str]) -> Upload:
        """The tensors asked for, as they stand after training: shared parameters, or facts about the training."""
        began = {spec.name: self.own[spec.name] for spec in self.backbone.named(personal=True)}
        return Upload(torch.from_numpy(self.rows.ids), {name: self._sent(name) for name in names}, began=began)

    def _sent(self, name: str) -> Sent:
        facts = {"samples": self._samples, "held": self._held, "loss": self._loss, "tokens": self._tokens}
        if name in facts:
            return facts[name]()
        if name in {spec.name for spec in self.backbone.named(scope="private")}:
            raise ValueError(f"{name!r} is private and cannot be uploaded")
        if name in self.params:
            return self.params[name]
        if name in self.store.tensors:
            return HeldTables(self.store.tensors[name], self.clients)
        if self.rows.whole:
            return self.tables[name]
        if name in self.pulls:
            return PulledTables(self.download.tables[name], self.table_of, self.rows.touched, self.pulls[name])
        return self._changed_rows(name)

    def _samples(self) -> Tensor:
        return torch.from_numpy(self.samples)

    def _tokens(self) -> Tensor:
        """(clients, history): of each client's first items by number, what others with the same item have too; −1 where
        there are no more. Only clients have the key; in a simulation it is the seed.
        """
        tokens = torch.full((len(self.clients), self.backbone.history), -1)
        key = Stream.of(self.seed, "tokens")
        for place in range(len(self.clients)):
            items = np.unique(self.rows.positives[place])[: self.backbone.history]
            tokens[place, : len(items)] = torch.from_numpy((key.bits(items) >> np.uint64(1)).astype(np.int64))
        return tokens

    def _loss(self) -> Tensor:
        return torch.stack([losses.double() for losses in self.values.values()]).sum(dim=0)

    def _held(self) -> Tensor:
        """(clients, items): which rows each client has trained."""
        items = next(spec.shape[0] for spec in self.backbone.named(role="item"))
        marked = torch.zeros(len(self.clients), items + 1, dtype=torch.bool)
        return marked.scatter_(1, self.rows.touched, True)[:, :items]

    def _changed_rows(self, name: str) -> TableRows:
        base, touched = self.download.tables[name], self.rows.touched
        return TableRows(base, self.table_of, touched, self.tables[name], self.scale.get(name))

    def scores(self, some: Tensor | slice = ALL) -> Tensor:
        """(clients, items) logits of `some` clients of the chunk under the `local` view: own parameters after training,
        before the next download.

        To be asked for after `keep`. Untouched items are scored with what was downloaded, touched ones with what
        became of them.
        """
        params = {name: value[some] for name, value in self.params.items()}
        if self.backbone.reshapes:
            tables = {name: table[some] for name, table in self.whole_tables().items()}
            positives = self.rows.positives.take(np.arange(len(self.clients))[some])
            liked = marked(positives, next(iter(tables.values())).shape[1])
            return self.backbone.logits(params, self.backbone.look(params, tables, liked))
        tables = {name: table[some] for name, table in self.tables.items()}
        if self.rows.whole:
            return self.backbone.logits(params, tables)
        everything = item_rows(self.backbone, self.store, self.download, self.clients[some])
        for name in self.scale.keys() & self.download.tables.keys():  # kept tables are scaled already
            everything[name] = everything[name] * self.scale[name][some, None, None].to(everything[name].dtype)
        logits = self.backbone.logits(params, everything).contiguous()
        touched = self.rows.touched[some]
        if self.backbone.bilinear:
            score_fused(self.backbone.bilinear, params, tables, touched, logits)
        else:
            _put(logits.numpy(), touched.numpy(), self.backbone.logits(params, tables).numpy())
        return logits

    def whole_tables(self) -> dict[str, Tensor]:
        """Every table whole, as it stands after training; kept ones are in the store by then."""
        if self.rows.whole:
            return self.tables
        return {name: self._whole_table(name) for name in self.tables}

    def _whole_table(self, name: str) -> Tensor:
        if name not in self.download.tables:
            return item_table(name, self.store, self.download, self.clients)
        return self._changed_rows(name).dense()


@compiled
def _put(scores: Floats, items: Ints, new: Floats) -> None:
    """Each client's `new` scores of `items` among its scores of all; beyond them is padding."""
    for u in range(len(scores)):
        for j in range(items.shape[1]):
            if items[u, j] < scores.shape[1]:
                scores[u, items[u, j]] = new[u, j]


def _gradients(loss: Tensor, *groups: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """By group and name, of the leaves that the loss depends on."""
    leaves = [leaf for group in groups for leaf in group.values()]
    found = iter(torch.autograd.grad(loss, leaves, allow_unused=True))
    named = [{name: next(found) for name in group} for group in groups]
    return [{name: gradient for name, gradient in group.items() if gradient is not None} for group in named]
