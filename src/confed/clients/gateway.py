"""People in one place: one phone, or a hundred thousand in a simulation.

They are trained and scored chunk by chunk: a chunk takes the rows it touches, trains them, is scored, sends and is
dropped, so that memory grows with the chunk, not with users x items. Its size changes nothing for anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.backbones import Backbone, ParamSpec
from confed.clients.cohort import Cohort
from confed.clients.procedures import Procedure
from confed.clients.sampling import draw_rows
from confed.clients.standing import stored_scores
from confed.clients.store import ClientStore
from confed.copies import copied
from confed.data.interactions import ONLY
from confed.data.split import TrainingData
from confed.federations.gateway import Cards, Gateway
from confed.messages import Agreement, Download, Push, Upload
from confed.privacy.filters import NO_FILTERS, Chain
from confed.random import Stream
from confed.soundness import EXPLODED, diverged, unless
from confed.threads import in_parallel

Ints = NDArray[np.int64]

_CHUNK_ROWS = 1 << 15
"""Rows of a batch that are looked up at once: enough work for an operation, and with d = 32 still 4 MB."""
_CHUNK_TOTAL = 1 << 16
"""Rows of a chunk: chunks of clients with long histories have fewer of them, so that all take about as long."""
_SCORE_VALUES = 1 << 20
"""Intermediate values of a scoring pass."""
_WHOLE_VALUES = 1 << 22
"""Values of the whole item tables of a chunk, where the objective reaches every row."""


class People(Gateway):
    """Trains the clients of a `TrainingData`."""

    def __init__(
        self,
        backbone: Backbone,
        procedure: Procedure,
        agreement: Agreement,
        data: TrainingData,
        seed: int,
        filters: Chain = NO_FILTERS,
        *,
        chunk: int | None = None,
        rounds: int = 1,
        copies: int = 1,
    ) -> None:
        """`copies` of what clients keep after so many `rounds` will be held at once, by whoever remembers earlier."""
        self.backbone = backbone
        self.procedure = procedure
        self.agreement = agreement
        self.filters = filters
        self.data = data
        self.ids = torch.from_numpy(data.ids)
        self.seed = seed
        self.chunk = chunk
        self._number = 0
        """Of the round that is being trained, or was last."""
        self.store = ClientStore(
            backbone,
            data.users,
            seed,
            agreement.dtype,
            whole=procedure.dense,
            touched=touched_rows(data, procedure, rounds),
            copies=copies,
        )
        forgotten = [spec for spec in backbone.named(kept=True) if spec.renewal]
        self.store.write(self._renewed(forgotten, data.ids, 0), torch.arange(data.users))

    def train(self, number: int, download: Download, clients: Tensor, cards: Cards) -> Iterator[Upload]:
        if number != self._number:
            self._number = number
            self.store.begin_round()
        card = cards.get(ONLY)
        examined = np.zeros(self.data.users, dtype=bool)
        if card:
            examined[card.clients.numpy()] = True

        def work(chunk: Ints) -> Upload:
            cohort = self.train_chunk(number, download, chunk)
            if card:
                self._hand_out(cohort, card.add, examined)
            return cohort.upload({*self.agreement.uploads, "loss"})

        yield from in_parallel(work, self.chunks(clients.numpy()))

    def _hand_out(
        self, cohort: Cohort, take: Callable[[Tensor, Tensor], None], examined: NDArray[np.bool_] | None = None
    ) -> None:
        """The scores of a cohort, of those who are examined."""
        clients = cohort.rows.clients
        marked = np.ones(len(clients), dtype=bool) if examined is None else examined[clients]
        for some in _some_of(marked, self._scored_at_once):
            take(cohort.clients[some], cohort.scores(some))

    def score(self, download: Download, cards: Cards) -> None:
        card = cards[ONLY]
        self._score(download, card.clients.numpy(), card.add)

    def users_of(self, clients: Tensor) -> dict[str, Tensor | None]:
        return {ONLY: None if len(clients) == len(self.ids) else clients}

    def receive(self, push: Push) -> None:
        self.store.receive(push)

    def state(self) -> dict[str, Tensor]:
        return {f"client.{name}": value for name, value in self.store.state().items()}

    def serving_copies(self) -> dict[str, Tensor]:
        """Rows that changed are collected in copies anyway."""
        dense = copied({f"client.{name}": value for name, value in self.store.tensors.items()})
        return self.state() | dense if self.store.by_row else dense

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._number = 0
        self.store.load({name.removeprefix("client."): value for name, value in state.items()})

    def train_chunk(self, number: int, download: Download, clients: Ints) -> Cohort:
        """Local training of some clients at once, up to the point where kept parameters are written back."""
        rows = draw_rows(
            self.data,
            clients,
            self.procedure.negatives,
            Stream.of(self.seed, "negatives", number),
            self.agreement.dtype,
            draw=self.procedure.draw,
            virtual=self.procedure.virtual,
            whole=self.procedure.dense,
        )
        due = [spec for spec in self.backbone.params if spec.renewal and spec.renewal.due(number)]
        cohort = Cohort(self.backbone, self.store, download, rows, self._renewed(due, rows.ids, number), self.seed)
        self._train(cohort, self.procedure, Stream.of(self.seed, "shuffle", number), number)
        cohort.keep()
        return cohort

    def reconstructed(self, download: Download, clients: Ints) -> Cohort:
        """Some clients who forget what is their own, with what they make of it anew, to be scored. Their negatives are
        the same in every round.
        """
        stream, procedure = Stream.of(self.seed, "reconstructed"), self.procedure
        rows = draw_rows(self.data, clients, procedure.negatives, stream, self.agreement.dtype, draw=procedure.draw)
        forgotten = [spec for spec in self.backbone.params if spec.renewal]
        cohort = Cohort(self.backbone, self.store, download, rows, self._renewed(forgotten, rows.ids, 0))
        self._train(cohort, replace(procedure, phases=procedure.reconstruct), stream.child("shuffle"), 1)
        return cohort

    def _renewed(self, specs: Iterable[ParamSpec], ids: Ints, number: int) -> dict[str, Tensor]:
        return {spec.name: spec.renewed(ids, self.seed, number, self.agreement.dtype) for spec in specs}

    def _train(self, cohort: Cohort, procedure: Procedure, stream: Stream, number: int) -> None:
        with unless(lambda: self._require_sound(cohort)):
            cohort.train(procedure, stream, number)
        self._require_sound(cohort)

    def _score(self, download: Download, clients: Ints, take: Callable[[Tensor, Tensor], None]) -> None:
        """Hand the logits of `clients` with the server's shared parameters to `take`; private ones are their own, or
        reconstructed.
        """
        size = self._scored_at_once

        def score(some: Ints) -> None:
            if self.procedure.reconstruct:
                self._hand_out(self.reconstructed(download, some), take)
                return
            of = torch.from_numpy(some)
            take(of, stored_scores(self.backbone, self.store, download, of, self.data.positives))

        stretches = (clients[start : start + size] for start in range(0, len(clients), size))
        for _ in in_parallel(score, self.chunks(clients) if self.procedure.reconstruct else stretches):
            pass

    def chunks(self, clients: Ints) -> Iterator[Ints]:
        """Cut the participants, longest first, so that little is padding and a batch of a chunk stays in cache."""
        procedure = self.procedure
        rows = self.data.positives.lengths[clients] * (1 + procedure.negatives)
        order = np.argsort(-rows, kind="stable")
        upto = np.concatenate([[0], np.cumsum(rows[order])])
        start = 0
        while start < len(clients):
            widest = min(int(rows[order[start]]), procedure.batch_size)
            limits = [_CHUNK_ROWS // widest]
            if procedure.dense or self.backbone.reshapes:
                limits.append(self.whole_tables)
            if self._net_values:
                limits.append(_WHOLE_VALUES // self._net_values)
            limits.append(int(np.searchsorted(upto, upto[start] + _CHUNK_TOTAL, side="right")) - 1 - start)
            size = self.chunk or max(min(limits), 1)
            yield clients[order[start : start + size]]
            start += size

    @property
    def _scored_at_once(self) -> int:
        """Of how many clients scores are held at once, and whole tables where each has its own."""
        pairs = max(_SCORE_VALUES // self.backbone.hidden, 1)
        size = max(pairs // self.data.items, 1)
        own = self.backbone.named(role="item", kept=True)
        return max(min(size, self.whole_tables), 1) if own else size

    @property
    def whole_tables(self) -> int:
        """Of how many clients the whole item tables are held at once."""
        return max(_WHOLE_VALUES // sum(math.prod(spec.shape) for spec in self.backbone.named(role="item")), 1)

    @property
    def _net_values(self) -> int:
        """Of the shared networks, of which every client trains a copy."""
        nets = [spec for spec in self.backbone.named(scope="shared") if spec.role != "item"]
        return sum(math.prod(spec.shape) for spec in nets)

    def _require_sound(self, cohort: Cohort) -> None:
        """Stop before anything that is not finite, or exploded, is kept or sent."""
        # A cause before what follows from it.
        sizes = {f"gradient of the {term} term": largest for term, largest in cohort.steepest.items()}
        sizes |= {f"{term} term": losses.abs() for term, losses in cohort.values.items()}
        for name, held in {**cohort.tables, **cohort.params}.items():
            # No entry is larger than the length, which is found twenty times faster than the largest entry.
            lengths = torch.linalg.vector_norm(held.flatten(1), dim=1)
            sound = bool((lengths < EXPLODED).all())
            sizes[f"parameter {name!r}"] = lengths if sound else held.flatten(1).abs().amax(dim=1)
        for what, largest in sizes.items():
            bad = torch.nonzero(~(largest < EXPLODED))[:, 0]
            if len(bad):
                client, value = int(cohort.rows.ids[bad[0]]), float(largest[bad[0]])
                remedy = f"lower the learning rate, {'`upload_noise`, ' * self.filters.blurs}or the term's weight"
                others = f" ({len(bad)} client(s) of this chunk)"
                raise diverged(f"the {what} of {{client}}", value, remedy + others, client)


def touched_rows(data: TrainingData, procedure: Procedure, rounds: int) -> int:
    """Rows of an item table that all clients together touch in so many rounds, at most: others are drawn in each."""
    each = data.positives.lengths * (1 + rounds * (procedure.negatives + math.ceil(procedure.virtual)))
    return int(np.minimum(each, data.items).sum())


def _some_of(marked: NDArray[np.bool_], size: int) -> Iterator[Tensor | slice]:
    """The places that are marked, `size` at a time; where all are, as stretches, which need no copies."""
    if marked.all():
        yield from (slice(start, start + size) for start in range(0, len(marked), size))
    elif marked.any():
        yield from torch.split(torch.from_numpy(np.flatnonzero(marked)), size)
