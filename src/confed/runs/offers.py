"""What a finished run offers: the best items of users, of everybody, of somebody new, and items like another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol

import polars as pl
import torch
from torch import Tensor
from torch.nn import functional

from confed.data.split import Cut
from confed.errors import ConfedError, NobodyNewError, unknown_name
from confed.ragged import Ragged
from confed.scoring import Scorer

Progress = Callable[[int, int], None]
"""Hears how many users are done, of how many."""

_SCORES = 1 << 24
"""Scores that are held at once."""
_KINDS = {"user": pl.String, "rank": pl.Int64, "item": pl.String, "title": pl.String, "score": pl.Float64}


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

    def left_out(self, domain: str | None = None) -> Mapping[str, list[str]]: ...

    def unknown_user(self, user: str) -> ConfedError: ...


@dataclass(frozen=True)
class Everybody:
    """The best items of all users of the data."""

    frame: pl.DataFrame
    """Columns user, rank, item, title if any is known, and score."""
    newcomers: int
    """Users whom the run did not train on, served as somebody new."""
    left_out: int
    """Users whom it cannot serve."""
    notes: tuple[str, ...]
    """The same in words, where there are any."""


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
        if user not in self._histories:
            raise self._run.unknown_user(user)
        return next(self._of_new([self._histories[user]]))

    def to_newcomer(self, history: Sequence[str]) -> list[Recommendation]:
        """To somebody with these items who was not in the data."""
        unknown = [item for item in history if item not in self._items]
        if unknown:
            raise unknown_name("item", unknown[0], self._items)
        if not history:
            raise ConfedError("history: name at least one item that the new user has")
        return next(self._of_new([self._places(history)]))

    def to_everybody(self, progress: Progress | None = None) -> Everybody:
        """All users of the data; whom the run had to leave out as somebody new, if the method can."""
        known = zip(self._cut.user_ids, self._of_known(range(self._cut.users)), strict=True)
        new, left_out, notes = self._to_newcomers()
        rows: list[tuple[str, int, str, str | None, float]] = []
        for done, (user, items) in enumerate(chain(known, new), start=1):
            rows += [(user, rank, one.item, one.title, one.score) for rank, one in enumerate(items, start=1)]
            if progress:
                progress(done, self._cut.users + len(new))
        frame = pl.DataFrame(rows, schema=_KINDS, orient="row")
        return Everybody(frame if self._titles else frame.drop("title"), len(new), left_out, notes)

    def _to_newcomers(self) -> tuple[list[tuple[str, list[Recommendation]]], int, tuple[str, ...]]:
        """Those whom the run had to leave out; how many cannot be served even so; and both in words."""
        try:
            offered = self._of_new(list(self._histories.values()))
            new, why = list(zip(self._histories, offered, strict=True)), "they have no item that the run knows"
        except NobodyNewError as error:
            new, why = [], error.message
        missed, of = len(self._left_out) - len(new), f"of {self._cut.users + len(self._left_out):,} users"
        notes = {
            f"{len(new):,} {of} are served as somebody new: the run did not train on them": len(new),
            f"{missed:,} {of} are left out: {why}": missed,
        }
        return new, missed, tuple(note for note, users in notes.items() if users)

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

    def _of_new(self, histories: Sequence[Sequence[int]]) -> Iterator[list[Recommendation]]:
        """People whom the run did not train on, by the places of their items."""
        several = max(_SCORES // self._cut.items, 1)
        for start in range(0, len(histories), several):
            own = Ragged.of(histories[start : start + several])
            yield from self._best(self._run.newcomers(own, self._domain).double(), own)

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

    def _places(self, items: Iterable[str]) -> list[int]:
        """Of those that the run knows."""
        return sorted({self._items[item] for item in items if item in self._items})

    @cached_property
    def _left_out(self) -> Mapping[str, list[str]]:
        return self._run.left_out(self._domain)

    @cached_property
    def _histories(self) -> dict[str, list[int]]:
        """By user whom the run had to leave out, the items that it knows, if there are any."""
        found = {user: self._places(items) for user, items in self._left_out.items()}
        return {user: places for user, places in found.items() if places}

    @cached_property
    def _users(self) -> dict[str, int]:
        return {user: place for place, user in enumerate(self._cut.user_ids)}

    @cached_property
    def _items(self) -> dict[str, int]:
        return {item: place for place, item in enumerate(self._cut.item_ids)}
