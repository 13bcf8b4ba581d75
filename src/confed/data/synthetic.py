"""Made-up interactions with a known structure, of any size.

Users belong to groups, items to categories; a group has a few favourite categories, items within a category
are popular by a power law, and activity is heavy-tailed. So the data has what federated methods look for
(groups of similar users, categories of similar items) and the truth is known. Nothing of size users x items
is ever held: memory grows with the interactions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from confed.data.interactions import Interactions
from confed.data.limits import BYTES
from confed.errors import ConfedError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FEWEST = 5
_PREFERRED_ROUNDS = 12  # after these, places still empty are filled without regard to taste
_EPOCH = 1_577_836_800  # 2020-01-01
_YEAR = 365 * 86_400
_MEAN_GAP = 6 * 3_600  # seconds between two interactions of a user
_ROW_SIZE = 64  # bytes of an interaction: two texts, four numbers


@dataclass(frozen=True)
class Recipe:
    """What `synthetic` can be asked for."""

    users: int = 1_000
    items: int = 500
    interactions_per_user: float = 30.0
    """On average; every user has at least five distinct items, nobody more than half of all items."""
    groups: int = 8
    categories: int = 16
    """At most one per item."""
    affinity: float = 0.8
    """Share of a user's interactions that goes to the favourite categories of its group."""
    skew: float = 1.0
    """Exponent of item popularity; 0 makes all items equally popular."""
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            kind, what = (Real, "a number") if isinstance(field.default, float) else (Integral, "a whole number")
            if not isinstance(getattr(self, field.name), kind):
                raise ConfedError(f"synthetic: {field.name}={getattr(self, field.name)!r} is not {what}")
        faults = {
            "users": self.users < 1,
            "items": self.items < _FEWEST,
            "interactions_per_user": not _FEWEST <= self.interactions_per_user < math.inf,
            "groups": self.groups < 1,
            "categories": self.categories < 1,
            "affinity": not 0 <= self.affinity <= 1,
            "skew": not 0 <= self.skew < math.inf,
            "seed": self.seed < 0,
        }
        for name, wrong in faults.items():
            if wrong:
                raise ConfedError(
                    f"synthetic: {name}={getattr(self, name)} is impossible; it takes at least 1 user, "
                    f"{_FEWEST} items, {_FEWEST} interactions per user, 1 group and 1 category, affinity in "
                    "[0, 1], skew and seed not negative, and nothing infinite"
                )
        BYTES.require(self.size, "synthetic: so many users, items, groups and interactions would take")

    @property
    def size(self) -> int:
        """About how many bytes the data and its truth take, before anything is made."""
        rows = self.users * int(min(self.interactions_per_user, max(_FEWEST, self.items // 2)))
        return _ROW_SIZE * rows + 64 * (self.users + self.items) + 32 * self.groups * self.kinds

    @property
    def kinds(self) -> int:
        """How many categories there really are."""
        return min(self.categories, self.items)

    @property
    def name(self) -> str:
        """The text from which `load_dataset` makes the same data again."""
        told = ",".join(f"{name}={value}" for name, value in self.told().items())
        return f"synthetic:{told}" if told else "synthetic"

    def told(self) -> dict[str, Any]:
        """The options that are not the usual ones."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


@dataclass(frozen=True)
class Truth:
    """What the data was made from; user i has id i + 1, item j has id j + 1."""

    user_group: Ints
    item_category: Ints


def synthetic(
    *,
    users: int = Recipe.users,
    items: int = Recipe.items,
    interactions_per_user: float = Recipe.interactions_per_user,
    groups: int = Recipe.groups,
    categories: int = Recipe.categories,
    affinity: float = Recipe.affinity,
    skew: float = Recipe.skew,
    seed: int = Recipe.seed,
) -> Interactions:
    """Seeded interactions; `Recipe` says what the options mean, `synthetic_truth` what is behind the data."""
    recipe = Recipe(users, items, interactions_per_user, groups, categories, affinity, skew, seed)
    truth = make_truth(recipe)
    return Interactions(make_rows(recipe, truth, np.arange(users)), time="real", name=recipe.name)


def synthetic_truth(**options: Any) -> Truth:
    """The groups and categories behind `synthetic` with the same options."""
    return make_truth(Recipe(**options))


# --- what several domains are made of as well (synthetic_domains.py) -------------------------------------------


def generator(recipe: Recipe, purpose: str) -> np.random.Generator:
    """Randomness of its own for every purpose, so that one choice never moves another."""
    return np.random.default_rng([recipe.seed, *purpose.encode()])


def make_truth(recipe: Recipe) -> Truth:
    rng = generator(recipe, "truth")
    return Truth(
        user_group=rng.integers(recipe.groups, size=recipe.users),
        item_category=rng.permutation(np.arange(recipe.items) % recipe.kinds),
    )


def make_rows(recipe: Recipe, truth: Truth, people: Ints, *, domain: str = "", sparsity: float = 1.0) -> pl.DataFrame:
    """Rows of the recipe's users, who have the numbers `people`; `truth` tells their groups.

    Tastes, popularity and activity are those of `domain`; everybody has `sparsity` times the interactions, five at
    least.
    """
    rng = generator(recipe, f"rows{domain}")
    taste = _taste(recipe, truth, generator(recipe, f"taste{domain}"))
    counts = np.maximum(_FEWEST, np.round(sparsity * _activity(recipe, rng))).astype(np.int64)
    user, item = _distinct_pairs(recipe, truth.user_group, taste, counts, rng)
    shuffled = np.argsort(user + rng.random(len(user)))  # rarer items were found last; time must not tell
    user, item = user[shuffled], item[shuffled]
    liked = taste.liked[truth.user_group[user], truth.item_category[item]]
    rating = np.clip(np.round(2.7 + 1.3 * liked + rng.normal(size=len(user))), 1, 5)
    return pl.DataFrame(
        {
            "user": pl.Series(people[user] + 1).cast(pl.String),
            "item": pl.Series(item + 1).cast(pl.String),
            "rating": rating,
            "timestamp": _stamps(user, counts, rng),
        }
    )


# --- how rows are drawn ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Taste:
    """Two tables to draw from: a category given the group, an item given the category."""

    category_steps: Floats
    """(groups * categories,) group g's cumulative shares lie in (g, g + 1]."""
    items_by_category: Ints
    item_steps: Floats
    """(items,) in the order of items_by_category, category c's cumulative shares lie in (c, c + 1]."""
    liked: NDArray[np.bool_]
    """(groups, categories)"""

    def draw(self, group: Ints, categories: int, rng: np.random.Generator) -> Ints:
        place = np.searchsorted(self.category_steps, group + rng.random(len(group)))
        category = np.minimum(place, (group + 1) * categories - 1) % categories
        place = np.searchsorted(self.item_steps, category + rng.random(len(group)))
        return self.items_by_category[np.minimum(place, len(self.item_steps) - 1)]


def _taste(recipe: Recipe, truth: Truth, rng: np.random.Generator) -> _Taste:
    favourites = max(1, recipe.kinds // 4)
    order = np.argsort(rng.random((recipe.groups, recipe.kinds)), axis=1)
    liked = order < favourites
    share = recipe.affinity * liked / favourites + (1 - recipe.affinity) / recipe.kinds
    popularity: Floats = np.power(1.0 + rng.permutation(recipe.items), -recipe.skew)
    by_category = np.argsort(truth.item_category, kind="stable")
    category = truth.item_category[by_category]
    return _Taste(
        category_steps=(np.arange(recipe.groups)[:, None] + _cumulative(share)).ravel(),
        items_by_category=by_category,
        item_steps=category + _cumulative_within(popularity[by_category], category),
        liked=liked,
    )


def _cumulative(share: Floats) -> Floats:
    steps = np.cumsum(share, axis=1)
    return np.asarray(steps / steps[:, -1:])


def _cumulative_within(weight: Floats, category: Ints) -> Floats:
    """Cumulative shares of each category's own sum; `category` is sorted."""
    running = np.cumsum(weight)
    last = np.searchsorted(category, category, side="right") - 1
    first = np.searchsorted(category, category, side="left")
    before = running[first] - weight[first]
    return np.asarray((running - before) / (running[last] - before))


def _activity(recipe: Recipe, rng: np.random.Generator) -> Ints:
    """Interactions per user: five and a log-normal rest, so that a few users have very many."""
    rest = recipe.interactions_per_user - _FEWEST
    tail = rng.lognormal(mean=-0.5, sigma=1.0, size=recipe.users)  # has mean 1
    most = max(_FEWEST, recipe.items // 2)
    return np.minimum(_FEWEST + np.minimum(np.round(rest * tail), most).astype(np.int64), most)


def _distinct_pairs(
    recipe: Recipe, group: Ints, taste: _Taste, counts: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """As many different items for each user as `counts` says: draw what is missing, drop repeats, again."""
    complete: list[Ints] = []
    pairs = np.empty(0, dtype=np.int64)  # user * items + item, of users that still miss some
    missing = counts.copy()
    rounds = 0
    while missing.any():
        user = np.repeat(np.arange(recipe.users), missing)
        if rounds < _PREFERRED_ROUNDS:
            item = taste.draw(group[user], recipe.kinds, rng)
        else:
            item = rng.integers(recipe.items, size=len(user))
        pairs = _distinct(np.concatenate([pairs, user * recipe.items + item]))
        owner = pairs // recipe.items
        have = np.bincount(owner, minlength=recipe.users)
        missing = np.where(have > 0, counts - have, 0)
        done = missing[owner] == 0
        complete.append(pairs[done])
        pairs = pairs[~done]
        rounds += 1
    found = np.concatenate(complete)
    return found // recipe.items, found % recipe.items


def _distinct(numbers: Ints) -> Ints:
    """np.unique without its hash table, which takes 7 s for 6 million numbers where sorting takes 0.1 s."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def _stamps(user: Ints, counts: Ints, rng: np.random.Generator) -> Ints:
    """Seconds, strictly increasing within a user; rows come grouped by user in ascending order."""
    gaps = 1 + rng.exponential(_MEAN_GAP, size=len(user)).astype(np.int64)
    running = np.cumsum(gaps)
    first_row = np.cumsum(counts) - counts
    start = _EPOCH + rng.integers(3 * _YEAR, size=len(counts))
    return np.asarray(start[user] + running - running[first_row][user])
