"""Co-clustering (CoFedRec): each round one group of clients that agree on one category of items gets its own model.

Global mean of the item tables → K-Means on its rows → one category and one core user at random → every participant's
similarity to the core user on that category's rows → those before the elbow are the similar group → their mean is
pushed to them. All others keep the tables they have. Everybody receives the items' categories, for the next round's
contrastive term. Other shared parameters follow `inner`.

Defined where the paper is silent (decisions.md "cofedrec"): the category is drawn among those that have items; equal
scores, a single participant or an elbow at the core user itself make no group this round.

`categories_per_round` > 1 is the paper's future work: the similar group is split again at the elbow on another
category, and each part after that on a third, so that partitions are nested and every part gets a mean of its own. Each
part draws its own core user; while there are others, no category is drawn twice on the same path. A part of one client
keeps its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from confed.messages import Download, Needs, Over, Push
from confed.random import Stream
from confed.server.clustering import elbow, summed_cosines
from confed.server.strategies.average import Average
from confed.server.strategies.base import Strategy
from confed.server.strategies.categories import ItemCategories, declared
from confed.server.uploads import OpenUploads, places_among


@dataclass(frozen=True)
class Division:
    """Participants, by their ids, held against a core user on one category, most similar first."""

    category: int
    items: int
    core: int
    clients: Tensor
    scores: Tensor
    elbow: int

    @property
    def group(self) -> Tensor:
        """Those up to the elbow; nobody if there is none."""
        return self.clients[: self.elbow + 1] if self.elbow else self.clients[:0]

    @property
    def rest(self) -> Tensor:
        return self.clients[self.elbow + 1 :] if self.elbow else self.clients


@dataclass
class _State:
    """What the next round depends on, and what pictures of this one are drawn from."""

    means: dict[str, Tensor]
    group_of: Tensor
    scores: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    elbow: int = 0


class CoCluster(Strategy[OpenUploads]):
    """Of the tables named, whose clients keep them; `inner` takes care of everything else that is shared."""

    needs: ClassVar[Needs] = "individual"

    def __init__(
        self, tables: tuple[str, ...], clusters: int, inner: Average, *, categories_per_round: int = 1
    ) -> None:
        self.tables = tables
        self.clusters = clusters
        self.inner = inner
        self.categories_per_round = categories_per_round
        self.plan: dict[str, Over] = {**dict.fromkeys(tables, "participants"), **inner.plan}
        self.uploads = frozenset(tables) | inner.uploads
        self.side = declared(clusters)

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._seed = seed
        self._ids = ids
        own = {name: shared[name] for name in self.tables}
        items = len(next(iter(own.values())))
        nobody = torch.full((len(ids),), -1)
        self._categories = ItemCategories(self.clusters, items)
        self._state = _State(own, nobody)
        self._push = self._pushed([], nobody)
        self._notes: dict[str, Any] = {}
        self.inner.start({name: value for name, value in shared.items() if name not in own}, ids, seed)

    def download(self, clients: Tensor) -> Download:
        """Everything but the kept tables, which clients have already."""
        of = self.inner.download(clients)
        return Download(of.tables, of.table_of, {**of.side, **self._categories.side}, alike=self._state.group_of)

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """Whoever has no table yet begins with everybody's mean."""
        of, _ = super().welcome(newcomers)
        return of, Push({name: mean[None] for name, mean in self._state.means.items()}, of.table_of)

    def aggregate(self, uploads: OpenUploads, number: int) -> None:
        self.inner.aggregate(uploads, number)
        means = {name: uploads.mean(name) for name in self.tables}
        self._categories.update(list(means.values()), Stream.of(self._seed, "categories", number))
        divisions, groups = self._divide(uploads, Stream.of(self._seed, "co-clustering", number))
        group_of = torch.full_like(self._state.group_of, -1)
        for version, group in enumerate(groups):
            group_of[places_among(self._ids, group)] = version
        first = divisions[0]
        self._push = self._pushed(uploads.means(self.tables, groups), group_of)
        self._state = _State(means, group_of, first.scores, first.elbow)
        self._notes = _notes(divisions, groups, group_of)

    def _pushed(self, models: list[dict[str, Tensor]], group_of: Tensor) -> Push:
        """A version for each group; none where there is no group."""
        none = {name: mean.new_empty(0, *mean.shape) for name, mean in self._state.means.items()}
        return Push(
            {name: torch.cat([none[name], *(model[name][None] for model in models)]) for name in self.tables}, group_of
        )

    def _divide(self, uploads: OpenUploads, stream: Stream) -> tuple[list[Division], list[Tensor]]:
        """All divisions in the order they were made, and the groups that get a table."""
        first = self._division(uploads, uploads.clients, stream, 0, frozenset())
        divisions = [first]
        groups = [(first.group, frozenset({first.category}))]
        for _ in range(1, self.categories_per_round):
            finer: list[tuple[Tensor, frozenset[int]]] = []
            for group, used in groups:
                if len(group) > 1:
                    divisions.append(self._division(uploads, group, stream, len(divisions), used))
                    path = used | {divisions[-1].category}
                    finer += [(divisions[-1].group, path), (divisions[-1].rest, path)]
            groups = finer
        return divisions, [group for group, _ in groups if len(group) > 1]

    def _division(
        self, uploads: OpenUploads, clients: Tensor, stream: Stream, number: int, used: frozenset[int]
    ) -> Division:
        """`number` counts the divisions of a round, so that each draws for itself."""
        membership = self._categories.membership
        categories = torch.unique(membership)
        fresh = [c for c in categories.tolist() if c not in used] or categories.tolist()
        category = fresh[int(stream.integers(1, number, len(fresh))[0])]
        items = torch.nonzero(membership == category)[:, 0]
        clients = clients.sort().values
        core = int(stream.integers(2, number, len(clients))[0])
        clients, scores = self._similar_to(uploads, items, clients.roll(-core))
        order = torch.sort(scores, descending=True, stable=True).indices
        core = int(clients[core])
        return Division(category, len(items), core, clients[order], scores[order], elbow(scores[order]))

    def _similar_to(self, uploads: OpenUploads, items: Tensor, clients: Tensor) -> tuple[Tensor, Tensor]:
        """Ids, ascending, and similarities to the first of `clients`, whose rows come before all others."""
        sent = uploads.each(self.tables, clients, items)
        parts = ((ids, torch.cat([of[name] for name in self.tables], dim=2)) for ids, of in sent)
        first, own = next(parts)
        found = [(first, summed_cosines(own, own[0]))]
        found += [(some, summed_cosines(rows, own[0])) for some, rows in parts]
        ids, scores = (torch.cat(of) for of in zip(*found, strict=True))
        order = torch.argsort(ids)
        return ids[order], scores[order]

    def push(self) -> Push:
        return self._push

    def notes(self) -> dict[str, Any]:
        return self._notes

    def state(self) -> dict[str, Tensor]:
        own = self._state
        return {
            **self.inner.state(),
            **{f"mean_{name}": value for name, value in own.means.items()},
            "membership": self._categories.membership,
            "group_of": own.group_of,
            "scores": own.scores,
            "elbow": torch.tensor(own.elbow),
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.inner.load(state)
        means = {name: state[f"mean_{name}"] for name in self.tables}
        self._categories.membership = state["membership"]
        self._state = _State(means, state["group_of"], state["scores"], int(state["elbow"]))


def _notes(divisions: list[Division], groups: list[Tensor], group_of: Tensor) -> dict[str, Any]:
    """For the log: the first division, the sizes of the groups, and who was in one, a bit for each client."""
    first = divisions[0]
    members = np.packbits((group_of >= 0).numpy()).tobytes().hex()
    return {
        "category": first.category,
        "category_items": first.items,
        "core": first.core,
        "elbow": first.elbow,
        "group": sum(len(group) for group in groups),
        "groups": [len(group) for group in groups],
        "members": members,
    }
