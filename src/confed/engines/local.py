"""The local engine: all clients of a round, chunk by chunk, in one process.

Memory grows with the chunk, not with users x items: a chunk takes the rows it touches, trains them, scores with them,
adds them to the server's running sums and drops them. Results do not depend on the chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from confed.clients.cohort import Cohort, global_scores
from confed.clients.sampling import draw_rows
from confed.clients.store import ClientStore
from confed.data.split import TrainingData
from confed.engines.base import Ints, RoundReport, Trainer
from confed.engines.threads import in_parallel
from confed.errors import ConfedError
from confed.evaluation.evaluator import Scorecard
from confed.evaluation.protocol import View
from confed.methods.base import Pieces
from confed.random import Stream
from confed.records import Download, Upload

_CHUNK_ROWS = 1 << 15
"""Rows of a batch that are looked up at once: enough work for an operation, and with d = 32 still 4 MB."""
_SCORE_VALUES = 1 << 20
"""Intermediate values of a scoring pass."""


class LocalEngine(Trainer):
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
        self.views: tuple[View, ...] = (pieces.view, "global") if shared and pieces.view == "local" else (pieces.view,)
        self.store = ClientStore(pieces.backbone, data.users, seed, self.dtype)
        pieces.strategy.start({spec.name: spec.initial(seed, self.dtype) for spec in shared}, data.users)
        self._serving: dict[str, Tensor] = {}

    def round(self, number: int, cards: Mapping[View, Scorecard]) -> RoundReport:
        strategy = self.pieces.strategy
        self._remember(before_round=True)
        download = strategy.download()
        uploads = strategy.collector()
        clients = self.pieces.selection.participants(self.data.users, self.seed, number)

        def visit(chunk: Ints) -> tuple[Upload, float]:
            cohort, losses = self._train(chunk, download, number)
            if "local" in cards:
                cards["local"].add(cohort.clients, cohort.scores())
            return cohort.upload(strategy.uploads), float(losses.sum())

        loss = 0.0
        for upload, chunk_loss in in_parallel(visit, self._chunks(clients)):
            uploads.add(upload)
            loss += chunk_loss
        if "local" in cards:
            absent = np.setdiff1d(np.arange(self.data.users), clients)
            self._score(cards["local"], download, absent)
        strategy.aggregate(uploads)
        if "global" in cards:
            self._score(cards["global"], strategy.download(), np.arange(self.data.users))
        self._remember(before_round=False)
        download_bytes = download.bytes_per_client * len(clients)
        return RoundReport(loss / len(clients), len(clients), uploads.nbytes, download_bytes)

    def _train(self, clients: Ints, download: Download, number: int) -> tuple[Cohort, Tensor]:
        """Local training of one chunk, up to the point where private parameters are written back."""
        procedure = self.pieces.procedure
        negatives = Stream.of(self.seed, "negatives", number)
        rows = draw_rows(self.data, clients, procedure.negatives, negatives, self.dtype)
        cohort = Cohort(self.pieces.backbone, self.store, download, rows)
        losses = cohort.train(procedure, Stream.of(self.seed, "shuffle", number))
        _require_finite(losses, cohort.clients, number)
        cohort.keep_private()
        return cohort, losses

    def _score(self, card: Scorecard, download: Download, clients: Ints) -> None:
        """Score `clients` with the server's shared parameters and their own private ones."""
        pairs = max(_SCORE_VALUES // self.pieces.backbone.hidden, 1)
        size = max(pairs // self.data.items, 1)

        def score(start: int) -> None:
            some = torch.from_numpy(clients[start : start + size])
            card.add(some, global_scores(self.pieces.backbone, self.store, download, some))

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
            size = self.chunk or max(min(_CHUNK_ROWS // widest, _SCORE_VALUES // self.data.items), 1)
            yield clients[order[start : start + size]]
            start += size

    def state(self) -> dict[str, Tensor]:
        server = {f"server.{name}": value for name, value in self.pieces.strategy.state().items()}
        return server | {f"client.{name}": value for name, value in self.store.tensors.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        strategy = self.pieces.strategy
        strategy.load({name: state[f"server.{name}"] for name in strategy.state()})
        for name in self.store.tensors:
            self.store.tensors[name] = state[f"client.{name}"].clone()

    @property
    def _rebuilds(self) -> bool:
        """Under the `local` view round state is dropped after scoring: serving trains the client's round again."""
        return self.view == "local" and "global" in self.views

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
        download = self.pieces.strategy.download()
        scores = global_scores(self.pieces.backbone, self.store, download, torch.from_numpy(clients))
        participants = self.pieces.selection.participants(self.data.users, self.seed, number)
        rebuilt = np.intersect1d(clients, participants) if self._rebuilds else np.empty(0, dtype=np.int64)
        if len(rebuilt):
            cohort, _ = self._train(rebuilt, download, number)
            place = {int(client): position for position, client in enumerate(clients)}
            scores[[place[int(client)] for client in cohort.clients]] = cohort.scores()
        return scores


def _require_finite(losses: Tensor, clients: Tensor, number: int) -> None:
    bad = clients[~torch.isfinite(losses)]
    if len(bad):
        raise ConfedError(
            f"round {number}: the loss of client {int(bad[0])} is not finite ({len(bad)} client(s) in this chunk): "
            f"lower `learning_rate`"
        )
