"""Where clients are: their gateway, beside it who examines them, and the desk at which the server's questions are
answered.

Held-out items are known to the examiners alone. What clients send is summed up here; where the strategy looks at single
clients their uploads lie here until the next turn, and are asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confed.copies import copied
from confed.errors import MessageError
from confed.evaluation.judge import Judge, Scored, asked_of
from confed.federations.gateway import Gateway
from confed.messages import Download, HeldTables, PartialSum, Push, Sent, Sums, Tally, Upload, dense, summed
from confed.seals import Sealed
from confed.server.uploads import Named
from confed.tensors import joined, load_sealed, part_of, save_sealed

_VALUES = 1 << 24
"""Of what single clients sent, so many are handed out at once."""


@dataclass(frozen=True)
class Trained:
    """What a round of training came to, of the clients of one site or of several."""

    sums: Sums
    loss: float
    """Summed over clients: a simulation sees it whether it is told or not."""
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    """Of the `local` view, by domain, if it was asked for."""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __add__(self, other: Trained) -> Trained:
        notes = {name: {**self.notes.get(name, {}), **of} for name, of in other.notes.items()}
        tallies = both_tallies(self.tallies, other.tallies)
        return Trained(self.sums + other.sums, self.loss + other.loss, tallies, {**self.notes, **notes})


def both_tallies(one: Mapping[str, Tally], other: Mapping[str, Tally]) -> dict[str, Tally]:
    """By domain; of a domain with clients in both places, of all of them."""
    return {**one, **{domain: one[domain] + of if domain in one else of for domain, of in other.items()}}


class Site:
    """Answers what a federation asks. Clients are given by their places here, in `where` by their ids."""

    def __init__(self, make: Callable[[], Gateway], judges: Mapping[str, Judge], *, rebuilt: bool) -> None:
        """`make` gives the gateway as a run begins.

        `rebuilt`: what the clients are scored with in a round is replaced at its end, so that serving trains them
        again from where it began.
        """
        self._make = make
        self.gateway = make()
        self._best: dict[str, Tensor] = {}
        self.judges = judges
        self.rebuilt = rebuilt
        self._before: dict[str, Tensor] = {}
        self._uploads: list[Upload] = []
        self._bases: dict[str, Tensor] = {}

    def train(
        self, number: int, download: Download, clients: Tensor, push: Push | None, *, examine: bool, opens: bool = True
    ) -> Trained:
        """Local training of `clients`, and what it came to. `opens`: a round begins with it."""
        self._receive(push)
        _require_served(download, clients)
        self._uploads = []
        if self.rebuilt and opens:
            self._before = self.gateway.serving_copies()
        cards = self._cards(clients) if examine else {}
        uploads = self.gateway.train(number, download, clients, cards)
        sums, loss, filtered = self._collected(number, uploads, download, self.gateway.ids[clients])
        return Trained(sums, loss, _tallies(cards), {**self.gateway.notes(), **filtered})

    def examine(self, download: Download, clients: Tensor, push: Push | None) -> dict[str, Tally]:
        """Where the held-out items of `clients` stand with what the server shares."""
        self._receive(push)
        _require_served(download, clients)
        cards = self._cards(clients)
        self.gateway.score(download, cards)
        return _tallies(cards)

    def leaving(self, upload: Upload, number: int, bases: Mapping[str, Tensor]) -> Upload:
        """What of an upload may leave: what was declared, after all filters. Draws are functions of the run's seed, so
        that runs can be repeated.
        """
        gateway = self.gateway
        called = gateway.called(int(upload.clients[0])) if len(upload) else None
        key = (gateway.seed, number) if called is None else (gateway.seed, number, called)
        declared = upload.only(gateway.agreement.uploads)
        return gateway.filters.leaving(declared, gateway.agreement, bases, *key)

    def each(self, names: Sequence[str], where: Tensor, items: Tensor | None) -> Iterator[tuple[Tensor, Named]]:
        """Ids and, by name, what those in `where` sent from here, or the rows `items` of it; if the first of them is
        here, it comes first.
        """
        sent = self.gateway.agreement.each(names, items).values()
        few = max(_VALUES // max(sum(of.values for of in sent), 1), 1)
        for some in (where[:1], where[1:]):
            for upload in self._uploads:
                asked = torch.nonzero(torch.isin(upload.clients, some))[:, 0]
                for chosen in torch.split(asked, few) if len(asked) else ():
                    part = upload.of(chosen)
                    yield part.clients, {name: _rows_of(part.tensors[name], items) for name in names}

    def partials(self, names: Sequence[str], groups: Sequence[Tensor]) -> list[dict[str, PartialSum]]:
        """What those of each group who are here changed in the tensors `names`."""
        return [{name: self._partial(name, group) for name in names} for group in groups]

    def serving_state(self, push: Push | None = None) -> dict[str, Tensor]:
        """What serving the last round takes of what is here, in copies."""
        self._receive(push)
        return copied(self._before) if self.rebuilt else self.gateway.serving_copies()

    def state(self, push: Push | None) -> dict[str, Tensor]:
        """What the next round depends on of what is here, not in copies."""
        self._receive(push)
        return self.gateway.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.gateway.load(state)

    def mark(self, push: Push | None) -> None:
        """The last round is the best so far: keep what serving it takes."""
        self._receive(push)
        self._best = {}  # frees the old one before the new one is made: tables that clients keep are large
        self._best = self.serving_state()

    def commit(self, folder: str, name: str, push: Push | None) -> Sealed:
        """Write what is here to a file, so that the run can go on from this point."""
        parts = {"state": self.state(push), "best": self._best, "site": {"ids": self.gateway.ids}}
        return save_sealed(Path(folder), name, joined(parts))

    def restore(self, folder: str, sealed: Mapping[str, Any] | None) -> None:
        """Return to what was written; to where the run began, if nothing was."""
        self.gateway = self._make()
        self._uploads, self._before, self._best = [], {}, {}
        if sealed is not None:
            written = load_sealed(Path(folder), Sealed(**sealed))
            self.load(part_of(written, "state"))
            self._best = part_of(written, "best")

    def _receive(self, push: Push | None) -> None:
        if push is not None:
            self.gateway.receive(push)

    def _cards(self, clients: Tensor) -> dict[str, Scored]:
        cards = {domain: judge.scorecard() for domain, judge in self.judges.items()}
        return asked_of(cards, self.gateway.users_of(clients), self.gateway.ids)

    def _collected(
        self, number: int, uploads: Iterator[Upload], download: Download, asked: Tensor
    ) -> tuple[Sums, float, dict[str, Any]]:
        """Sums as planned, the loss, and what filters note. The uploads are dropped, unless the strategy may ask about
        them.
        """
        notes: dict[str, Any] = {}
        awaited = _Awaited(asked)
        agreed = self.gateway.agreement
        self._bases = agreed.bases(download)
        of = {name: PartialSum.nothing(self._bases[name], over) for name, over in agreed.plan.items()}
        participants, loss, counter = 0, 0.0, _Bytes(self.gateway.filters.longer(agreed))
        for upload in uploads:
            awaited.expect(upload.clients)
            self._note(notes, upload)
            sent = self.leaving(upload, number, self._bases)
            participants += len(sent)
            loss += float(upload.tensor("loss").sum())
            counter.count(sent)
            if agreed.needs == "individual":
                self._uploads.append(sent)
            else:
                self._add(of, sent)
        for sent in self._uploads:  # not while others still train: it would only take their cores
            self._add(of, sent)
        return Sums(participants, loss if "loss" in agreed.uploads else None, counter.total, of), loss, notes

    def _add(self, of: dict[str, PartialSum], sent: Upload) -> None:
        for name, over in self.gateway.agreement.plan.items():
            if sent.rows is None:
                of[name].take(sent, name, over, self._bases[name])
            else:
                of[name] += summed(sent, name, over, self._bases[name])

    def _note(self, notes: dict[str, Any], upload: Upload) -> None:
        """By filter and client; of clients without a name of their own, what holds for everybody."""
        who = self.gateway.called(int(upload.clients[0])) if len(upload) else None
        for name, note in self.gateway.filters.notes(upload, self.gateway.agreement).items():
            notes.setdefault(name, {})[who or "everybody"] = note

    def _partial(self, name: str, group: Tensor) -> PartialSum:
        over, base = self.gateway.agreement.plan[name], self._bases[name]
        total = PartialSum.nothing(base, over)
        for upload in self._uploads:
            chosen = torch.isin(upload.clients, group)
            if bool(chosen.any()):
                total += summed(upload.of(chosen), name, over, base)
        return total


class _Awaited:
    """Nobody sends twice, and only who was asked."""

    def __init__(self, clients: Tensor) -> None:
        self._clients = clients.sort().values
        self._came = torch.zeros(len(clients), dtype=torch.bool)

    def expect(self, clients: Tensor) -> None:
        place = torch.searchsorted(self._clients, clients).clamp(max=len(self._clients) - 1)
        known = self._clients[place] == clients
        if not bool(known.all()):
            raise MessageError(f"an upload of client {int(clients[~known][0])}, who does not take part in this round")
        if bool(self._came[place].any()):
            raise MessageError(f"a second upload of client {int(clients[self._came[place]][0])} in this round")
        self._came[place] = True


class _Bytes:
    """Of all clients' messages, each `longer` by so many bytes than as it stands. Those with whole tables are all as
    long, and one is measured.
    """

    def __init__(self, longer: int) -> None:
        self.total = 0
        self._longer = longer
        self._each = 0

    def count(self, upload: Upload) -> None:
        if len(upload) and (upload.rows is not None or not self._each):
            self._each = upload.bytes_per_client
        self.total += len(upload) * (self._each + self._longer)


def _require_served(download: Download, clients: Tensor) -> None:
    if not download.reaches(clients):
        raise MessageError("somebody is asked who was sent nothing")


def _tallies(cards: Mapping[str, Scored]) -> dict[str, Tally]:
    return {domain: card.tally() for domain, card in cards.items()}


def _rows_of(sent: Sent, items: Tensor | None) -> Tensor:
    if items is None:
        return dense(sent)
    return sent.rows(items) if isinstance(sent, HeldTables) else dense(sent).index_select(1, items)
