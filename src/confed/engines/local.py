"""The local engine: a server and all clients of a run in one process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from confed.clients.cohort import Cohort, item_rows, item_table, ready
from confed.clients.gateway import Gateway
from confed.data.split import TrainingData
from confed.engines.base import Ints, RoundReport, Trainer
from confed.errors import ConfedError
from confed.messages import Download, Push, Upload, dense
from confed.methods.base import Pieces
from confed.protocol import View
from confed.scoring import Card
from confed.threads import in_parallel

Carried = TypeVar("Carried", Download, Push, Upload)


class LocalEngine(Trainer[Card]):
    """Trains the clients of a `TrainingData` with the pieces of a method."""

    def __init__(
        self,
        pieces: Pieces,
        data: TrainingData,
        seed: int,
        *,
        chunk: int | None = None,
        dtype: str = "float32",
    ) -> None:
        self.pieces = pieces
        self.data = data
        self.seed = seed
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.view: View = pieces.view
        shared = pieces.backbone.named(scope="shared")
        self.views = _views(pieces)
        copies = 3 if self._rebuilds else 2  # as it stands, of the best round, and before the round if it is rebuilt
        self.gateway = Gateway(pieces.backbone, pieces.procedure, data, seed, self.dtype, chunk=chunk, copies=copies)
        self.store = self.gateway.store
        start = {spec.name: spec.initial(seed, self.dtype) for spec in shared}
        pieces.strategy.start(start, torch.from_numpy(data.ids), seed)
        self._serving: dict[str, Tensor] = {}

    def round(self, number: int, cards: Mapping[View, Card]) -> RoundReport:
        strategy = self.pieces.strategy
        self._remember(before_round=True)
        download = self.carried(strategy.download())
        clients = self._participants(number)
        uploads = strategy.collector(torch.from_numpy(self.data.ids[clients]))

        def visit(cohort: Cohort) -> Upload:
            if "local" in cards:
                cards["local"].add(cohort.clients, cohort.scores())
            return self.carried(cohort.upload(strategy.uploads))

        for upload in self.gateway.train(number, download, clients, visit):
            uploads.add(upload)
        if "local" in cards:
            absent = np.setdiff1d(np.arange(self.data.users), clients)
            self.gateway.score(download, absent, cards["local"].add)
        strategy.aggregate(uploads, number)
        push = strategy.push()
        if push:
            self.store.receive(self.carried(push))
        for view in cards.keys() - {"local"}:
            self.gateway.score(self.carried(strategy.download()), np.arange(self.data.users), cards[view].add)
        self._remember(before_round=False)
        download_bytes = download.bytes_per_client * len(clients) + (push.nbytes if push else 0)
        if number == 1:
            download_bytes += self._first_tables
        return RoundReport(uploads.loss / len(clients), len(clients), uploads.nbytes, download_bytes, strategy.notes())

    def carried(self, message: Carried) -> Carried:
        """A message on its way between server and clients, who are in one process here."""
        return message

    def _participants(self, number: int) -> Ints:
        return self.pieces.selection.participants(self.data.ids, self.seed, number)

    def upload_parts(self) -> dict[str, int]:
        kinds = {"item": "item tables", "net": "networks"}
        parts: dict[str, int] = {}
        for spec in self.pieces.backbone.named(scope="shared"):
            if spec.name in self.pieces.strategy.uploads:
                kind = kinds.get(spec.role, "other")
                parts[kind] = parts.get(kind, 0) + math.prod(spec.shape) * self.dtype.itemsize
        return parts

    @property
    def _first_tables(self) -> int:
        """Bytes of the tables that every client receives once and then keeps."""
        kept = self.pieces.backbone.named(scope="shared", kept=True)
        tables = {spec.name: spec.initial(self.seed, self.dtype)[None] for spec in kept}
        return Push(tables, torch.zeros(self.data.users, dtype=torch.int64)).nbytes if kept else 0

    def state(self) -> dict[str, Tensor]:
        server = {f"server.{name}": value for name, value in self.pieces.strategy.state().items()}
        return server | {f"client.{name}": value for name, value in self.store.tensors.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        strategy = self.pieces.strategy
        strategy.load({name: state[f"server.{name}"] for name in strategy.state()})
        for name in self.store.tensors:
            self.store.tensors[name].copy_(state[f"client.{name}"])

    @property
    def _rebuilds(self) -> bool:
        """Under the `local` view the server's answer replaces what was scored: serving trains the round again."""
        return self.view == "local" and len(self.views) > 1

    def _remember(self, *, before_round: bool) -> None:
        """Keep what `serve` needs: the state before the round where it must be rebuilt, after it otherwise."""
        if before_round == self._rebuilds:
            self._serving = self.state()
            if before_round:
                self._serving = {name: value.clone() for name, value in self._serving.items()}

    def serving_state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self._serving.items()}

    def serve(self, state: Mapping[str, Tensor], number: int, clients: Ints) -> Tensor:
        self.load(state)
        params, tables, liked = self._served(number, clients)
        return self.pieces.backbone.logits(params, self.pieces.backbone.look(params, tables, liked))

    def _served(self, number: int, clients: Ints) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """Parameters, whole tables and marked positives with which `clients` were scored in round `number`, from the
        state that was loaded; those who took part train again where the round has to be rebuilt.
        """
        backbone, download = self.pieces.backbone, self.pieces.strategy.download()
        params, tables, liked = ready(backbone, self.store, download, torch.from_numpy(clients), self.data.positives)
        participants = self._participants(number)
        rebuilt = np.intersect1d(clients, participants) if self._rebuilds else np.empty(0, dtype=np.int64)
        if len(rebuilt):
            cohort = self.gateway.train_chunk(number, download, rebuilt)
            order = np.argsort(clients)
            place = torch.from_numpy(order[np.searchsorted(clients, cohort.clients.numpy(), sorter=order)])
            trained = cohort.whole_tables()
            params = {n: _replaced(value, len(clients), place, cohort.params[n]) for n, value in params.items()}
            tables = {n: _replaced(value, len(clients), place, trained[n]) for n, value in tables.items()}
        return params, tables, liked

    def client_tables(self, state: Mapping[str, Tensor], number: int) -> Tensor | None:
        """(clients, items, d): the shared item tables, side by side, of every client in the round that was served.

        As trained where the round is rebuilt, which is what clients send; else as they lie ready after it. None where
        no table is shared. Changes the trainer's state.
        """
        names = [spec.name for spec in self.pieces.backbone.named(role="item", scope="shared")]
        if not names:
            return None
        self.load(state)
        download = self.pieces.strategy.download()
        everybody = torch.arange(self.data.users)
        ready = [item_table(name, self.store, download, everybody) for name in names]
        found = (torch.cat(ready, dim=2) if len(ready) > 1 else ready[0]).expand(self.data.users, -1, -1)
        if not self._rebuilds:
            return found
        found = found.clone()
        for chunk in self.gateway.chunks(self._participants(number)):
            cohort = self.gateway.train_chunk(number, download, chunk)
            sent = cohort.upload(names).tensors
            found[cohort.clients] = torch.cat([dense(t) for t in sent.values()], dim=2)
        return found

    def two_tables(self, state: Mapping[str, Tensor], number: int, clients: Ints) -> tuple[Tensor, Tensor] | None:
        """(clients, items, d) twice: the shared table as `clients` look at it and their own, as they were served.

        None where they score with one table only. Changes the trainer's state.
        """
        backbone = self.pieces.backbone
        if not backbone.views:
            return None
        self.load(state)
        seen = backbone.look(*self._served(number, clients))
        shared, own = (seen[name].expand(len(clients), -1, -1) for name in backbone.views)
        return shared, own

    def two_scores(self, state: Mapping[str, Tensor], number: int) -> Iterator[tuple[Tensor, Tensor]] | None:
        """(clients, items) twice, some clients after others: how they score by what everybody shares, and by what is
        their own.

        With two tables by each of them alone; under the `local` view by the table they received and by what they made
        of it, with the same head, as far as they took part. None where there is only one view of an item. Changes the
        trainer's state.
        """
        if not self.pieces.backbone.views and not self._rebuilds:
            return None
        self.load(state)
        everybody = self._participants(number)
        if self.pieces.backbone.views:
            everybody = np.arange(self.data.users)
        size = self.gateway.whole_tables
        return (self._both(number, everybody[i : i + size]) for i in range(0, len(everybody), size))

    def _both(self, number: int, clients: Ints) -> tuple[Tensor, Tensor]:
        backbone = self.pieces.backbone
        params, tables, liked = self._served(number, clients)
        if not backbone.views:
            received = item_rows(backbone, self.store, self.pieces.strategy.download(), torch.from_numpy(clients))
            return backbone.logits(params, received), backbone.logits(params, tables)
        seen = backbone.look(params, tables, liked)
        shared, own = (backbone.scored_alone(params, seen[name]) for name in backbone.views)
        return shared, own

    def drift(self, state: Mapping[str, Tensor], number: int) -> Tensor | None:
        """(clients,): how far a round of local training takes each client's shared item tables from those the server
        sends, as a root mean square over entries: round `number` where that is rebuilt, else the one after it.

        None where no table is shared. Changes the trainer's state.
        """
        names = [spec.name for spec in self.pieces.backbone.named(role="item", scope="shared")]
        if not names:
            return None
        self.load(state)
        download = self.pieces.strategy.download()
        found = torch.zeros(self.data.users, dtype=torch.float64)

        def visit(chunk: Ints) -> None:
            # A chunk is in the order in which its rows are drawn, longest first.
            before = {name: item_table(name, self.store, download, torch.from_numpy(chunk)) for name in names}
            cohort = self.gateway.train_chunk(number if self._rebuilds else number + 1, download, chunk)
            sent = cohort.upload(names).tensors
            moved = [dense(t) - before[name] for name, t in sent.items()]
            squares = torch.stack([part.square().sum(dim=(1, 2), dtype=torch.float64) for part in moved]).sum(dim=0)
            found[cohort.clients] = (squares / sum(part[0].numel() for part in moved)).sqrt()

        for _ in in_parallel(visit, self.gateway.chunks(np.arange(self.data.users))):
            pass
        return found


def _replaced(values: Tensor, clients: int, place: Tensor, by: Tensor) -> Tensor:
    """`values`, whose client axis may be 1, one for each client, with those at `place` replaced."""
    whole = values.expand(clients, *values.shape[1:]).clone()
    whole[place] = by.to(whole.dtype)
    return whole


def _views(pieces: Pieces) -> tuple[View, ...]:
    """The view asked for, and beside the `local` one what clients would be served after the server's step."""
    shared = pieces.backbone.named(scope="shared")
    kept = any(spec.kept for spec in shared)
    served: View = "pushed" if kept else "global"
    if pieces.view not in ("local", served):
        raise ConfedError(f"view = {pieces.view!r}: this method can be scored under 'local' or {served!r}")
    if pieces.view == "local":
        return ("local", served) if shared else ("local",)
    return ("pushed", "local") if kept else (pieces.view,)
