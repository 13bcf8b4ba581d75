"""The local engine: all clients of a round, chunk by chunk, in one process.

Memory grows with the chunk, not with users x items: a chunk takes the rows it touches, trains them, scores with them,
adds them to the server's running sums and drops them. Results do not depend on the chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from confed.clients.cohort import Cohort, item_rows, item_table, ready, stored_scores
from confed.clients.sampling import draw_rows
from confed.clients.store import ClientStore
from confed.data.split import TrainingData
from confed.engines.base import Ints, RoundReport, Trainer
from confed.engines.threads import in_parallel
from confed.errors import ConfedError, DivergedError
from confed.evaluation.protocol import View
from confed.methods.base import Pieces
from confed.random import Stream
from confed.records import Download, Upload
from confed.scoring import Card

_CHUNK_ROWS = 1 << 15
"""Rows of a batch that are looked up at once: enough work for an operation, and with d = 32 still 4 MB."""
_SCORE_VALUES = 1 << 20
"""Intermediate values of a scoring pass."""
_WHOLE_VALUES = 1 << 22
"""Values of the whole item tables of a chunk, where the objective reaches every row."""
_EXPLODED = 1e9
"""Losses, gradients and tables beyond this are accidents."""


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
        self.chunk = chunk
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.view: View = pieces.view
        shared = pieces.backbone.named(scope="shared")
        self.views = _views(pieces)
        copies = 3 if self._rebuilds else 2  # as it stands, of the best round, and before the round if it is rebuilt
        self.store = ClientStore(pieces.backbone, data.users, seed, self.dtype, copies=copies)
        pieces.strategy.start({spec.name: spec.initial(seed, self.dtype) for spec in shared}, data.users, seed)
        self._serving: dict[str, Tensor] = {}

    def round(self, number: int, cards: Mapping[View, Card]) -> RoundReport:
        strategy = self.pieces.strategy
        self._remember(before_round=True)
        download = strategy.download()
        uploads = strategy.collector()
        clients = self.pieces.selection.participants(self.data.users, self.seed, number)

        def visit(chunk: Ints) -> tuple[Upload, float]:
            cohort, losses = self._train(chunk, download, number)
            if "local" in cards:
                cards["local"].add(cohort.clients, cohort.scores())
            return cohort.upload(strategy.uploads), losses

        loss = 0.0
        for upload, chunk_loss in in_parallel(visit, self._chunks(clients)):
            uploads.add(upload)
            loss += chunk_loss
        if "local" in cards:
            absent = np.setdiff1d(np.arange(self.data.users), clients)
            self._score(cards["local"], download, absent)
        strategy.aggregate(uploads, number)
        push = strategy.push()
        if push:
            self.store.receive(push)
        for view in cards.keys() - {"local"}:
            self._score(cards[view], strategy.download(), np.arange(self.data.users))
        self._remember(before_round=False)
        download_bytes = download.bytes_per_client * len(clients) + (push.nbytes if push else 0)
        if number == 1:
            download_bytes += self._first_tables
        return RoundReport(loss / len(clients), len(clients), uploads.nbytes, download_bytes, strategy.notes())

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
        return sum(math.prod(spec.shape) for spec in kept) * self.dtype.itemsize * self.data.users

    def _train(self, clients: Ints, download: Download, number: int) -> tuple[Cohort, float]:
        """Local training of one chunk, up to the point where kept parameters are written back; its summed loss."""
        procedure = self.pieces.procedure
        rows = draw_rows(
            self.data,
            clients,
            procedure.negatives,
            Stream.of(self.seed, "negatives", number),
            self.dtype,
            virtual=procedure.virtual,
            whole=procedure.dense,
        )
        cohort = Cohort(self.pieces.backbone, self.store, download, rows)
        values = cohort.train(procedure, Stream.of(self.seed, "shuffle", number), number)
        self._require_sound(cohort, values, number)
        cohort.keep()
        return cohort, sum(float(losses.sum()) for losses in values.values())

    def _require_sound(self, cohort: Cohort, values: Mapping[str, Tensor], number: int) -> None:
        """Stop before anything that is not finite, or exploded, is kept or sent."""
        # A cause before what follows from it.
        sizes = {f"gradient of the {term} term": largest for term, largest in cohort.steepest.items()}
        sizes |= {f"{term} term": losses.abs() for term, losses in values.items()}
        for name, held in {**cohort.tables, **cohort.params}.items():
            # No entry is larger than the length, which is found twenty times faster than the largest entry.
            lengths = torch.linalg.vector_norm(held.flatten(1), dim=1)
            sound = bool((lengths < _EXPLODED).all())
            sizes[f"parameter {name!r}"] = lengths if sound else held.flatten(1).abs().amax(dim=1)
        for what, largest in sizes.items():
            bad = torch.nonzero(~(largest < _EXPLODED))[:, 0]
            if len(bad):
                client, value = int(cohort.clients[bad[0]]), float(largest[bad[0]])
                raise DivergedError(
                    f"round {number}: the {what} of client {client} is {value:.3g} ({len(bad)} client(s) in this "
                    f"chunk): lower the learning rate, or the term's weight"
                )

    def _score(self, card: Card, download: Download, clients: Ints) -> None:
        """Score `clients` with the server's shared parameters and their own private ones."""
        pairs = max(_SCORE_VALUES // self.pieces.backbone.hidden, 1)
        size = max(pairs // self.data.items, 1)
        if self.pieces.backbone.named(role="item", kept=True):
            size = max(min(size, _WHOLE_VALUES // self._table_values), 1)

        def score(start: int) -> None:
            some = torch.from_numpy(clients[start : start + size])
            card.add(some, stored_scores(self.pieces.backbone, self.store, download, some, self.data.positives))

        for _ in in_parallel(score, range(0, len(clients), size)):
            pass

    def _chunks(self, clients: Ints) -> Iterator[Ints]:
        """Cut the participants, longest first, so that little is padding and a batch of a chunk stays in cache."""
        procedure = self.pieces.procedure
        rows = self.data.positives.lengths[clients] * (1 + procedure.negatives)
        order = np.argsort(-rows, kind="stable")
        start = 0
        while start < len(clients):
            widest = min(int(rows[order[start]]), procedure.batch_size)
            limits = [_CHUNK_ROWS // widest, _SCORE_VALUES // self.data.items]
            if procedure.dense or self.pieces.backbone.reshapes:
                limits.append(_WHOLE_VALUES // self._table_values)
            if self._net_values:
                limits.append(_WHOLE_VALUES // self._net_values)
            size = self.chunk or max(min(limits), 1)
            yield clients[order[start : start + size]]
            start += size

    @property
    def _net_values(self) -> int:
        """Of the shared networks, of which every client trains a copy."""
        nets = [spec for spec in self.pieces.backbone.named(scope="shared") if spec.role != "item"]
        return sum(math.prod(spec.shape) for spec in nets)

    @property
    def _table_values(self) -> int:
        return sum(math.prod(spec.shape) for spec in self.pieces.backbone.named(role="item"))

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
        participants = self.pieces.selection.participants(self.data.users, self.seed, number)
        rebuilt = np.intersect1d(clients, participants) if self._rebuilds else np.empty(0, dtype=np.int64)
        if len(rebuilt):
            cohort, _ = self._train(rebuilt, download, number)
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
        for chunk in self._chunks(self.pieces.selection.participants(self.data.users, self.seed, number)):
            cohort, _ = self._train(chunk, download, number)
            sent = cohort.upload(names).tensors
            dense = [t if isinstance(t, Tensor) else t.dense() for t in sent.values()]
            found[cohort.clients] = torch.cat(dense, dim=2)
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
        everybody = self.pieces.selection.participants(self.data.users, self.seed, number)
        if self.pieces.backbone.views:
            everybody = np.arange(self.data.users)
        size = max(_WHOLE_VALUES // self._table_values, 1)
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
            cohort, _ = self._train(chunk, download, number if self._rebuilds else number + 1)
            sent = cohort.upload(names).tensors
            moved = [(t if isinstance(t, Tensor) else t.dense()) - before[name] for name, t in sent.items()]
            squares = torch.stack([part.square().sum(dim=(1, 2), dtype=torch.float64) for part in moved]).sum(dim=0)
            found[cohort.clients] = (squares / sum(part[0].numel() for part in moved)).sqrt()

        for _ in in_parallel(visit, self._chunks(np.arange(self.data.users))):
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
