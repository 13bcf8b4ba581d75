"""What a finished run offers: the best items of users, of everybody, of somebody new, and items like another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import polars as pl
import torch
from torch import Tensor
from torch.nn import functional

from confed.data.split import Cut
from confed.errors import ConfedError, unknown_name
from confed.ragged import Ragged
from confed.scoring import Scorer

Progress = Callable[[int, int], None]
"""Hears how many users are done, of how many."""

_SCORES = 1 << 24
"""Scores that are held at once."""


@dataclass(frozen=True)
class Recommendation:
    """One recommended item, by its original id."""

    item: str
    score: float
    title: str | None = None


class Served(Protocol):
    """The run that is asked."""

    def scorer(self, domain: str | None = None) -> Scorer: ...

    def newcomers(self, histories: Ragged, domain: str | None = None) -> Tensor: ...

    def item_vectors(self, domain: str | None = None) -> Tensor: ...

    def left_out(self, user: str, domain: str | None = None) -> list[str]: ...

    def unknown_user(self, user: str) -> ConfedError: ...


class Offers:
    """The `k` best of a domain, best first; what somebody has is left out, unless it is asked for."""

    def __init__(
        self, run: Served, cut: Cut, titles: Mapping[str, str], domain: str | None, k: int, *, filter_seen: bool = True
    ) -> None:
        if k < 1:
            raise ConfedError(f"k = {k}: ask for at least one item")
        self._run = run
        self._cut = cut
        self._titles = titles
        self._domain = domain
        self._k = k
        self._filter_seen = filter_seen

    def to_user(self, user: str) -> list[Recommendation]:
        """Of the data; whom the run had to leave out is served as somebody new."""
        if user in self._users:
            return next(self._of_known([self._users[user]]))
        known = [item for item in self._run.left_out(user, self._domain) if item in self._items]
        if not known:
            raise self._run.unknown_user(user)
        return self.to_newcomer(known)

    def to_newcomer(self, history: Sequence[str]) -> list[Recommendation]:
        """To somebody with these items who was not in the data."""
        unknown = [item for item in history if item not in self._items]
        if unknown:
            raise unknown_name("item", unknown[0], self._items)
        if not history:
            raise ConfedError("history: name at least one item that the new user has")
        own = Ragged.of([sorted({self._items[item] for item in history})])
        return next(self._best(self._run.newcomers(own, self._domain).double(), own))

    def to_everybody(self, progress: Progress | None = None) -> pl.DataFrame:
        """Columns user, rank, item, title if any is known, and score."""
        columns: dict[str, list[str | int | float | None]] = {
            name: [] for name in ("user", "rank", "item", "title", "score")
        }
        for done, (user, offered) in enumerate(
            zip(self._cut.user_ids, self._of_known(range(self._cut.users)), strict=True)
        ):
            columns["user"] += [user] * len(offered)
            columns["rank"] += range(1, len(offered) + 1)
            columns["item"] += [one.item for one in offered]
            columns["title"] += [one.title for one in offered]
            columns["score"] += [one.score for one in offered]
            if progress:
                progress(done + 1, self._cut.users)
        kinds = {"user": pl.String, "rank": pl.Int64, "item": pl.String, "title": pl.String, "score": pl.Float64}
        frame = pl.DataFrame(columns, schema=kinds)
        return frame if self._titles else frame.drop("title")

    def like(self, item: str) -> list[Recommendation]:
        """Without the item itself."""
        if item not in self._items:
            raise unknown_name("item", item, self._items)
        vectors = functional.normalize(self._run.item_vectors(self._domain).double(), dim=1)
        place = self._items[item]
        return next(self._best((vectors @ vectors[place])[None], Ragged.of([[place]])))

    def _of_known(self, users: Sequence[int]) -> Iterator[list[Recommendation]]:
        score = self._run.scorer(self._domain)
        for some in torch.split(torch.as_tensor(users), max(_SCORES // self._cut.items, 1)):
            yield from self._best(score(some).double(), self._cut.seen.take(some.numpy()))

    def _best(self, scores: Tensor, seen: Ragged) -> Iterator[list[Recommendation]]:
        """Of each row."""
        scores = scores.clone()
        if self._filter_seen:
            scores[torch.from_numpy(seen.row_of), torch.from_numpy(seen.values)] = -torch.inf
        best = torch.topk(scores, min(self._k, scores.shape[1]), dim=1)
        for items, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            ids = [self._cut.item_ids[item] for item in items]
            yield [
                Recommendation(name, value, self._titles.get(name))
                for name, value in zip(ids, values, strict=True)
                if value > float("-inf")
            ]

    @cached_property
    def _users(self) -> dict[str, int]:
        return {user: place for place, user in enumerate(self._cut.user_ids)}

    @cached_property
    def _items(self) -> dict[str, int]:
        return {item: place for place, item in enumerate(self._cut.item_ids)}
