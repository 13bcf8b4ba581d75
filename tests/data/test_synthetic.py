from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from confed.data.interactions import Interactions
from confed.data.synthetic import Recipe, synthetic, synthetic_truth
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError


@pytest.fixture(scope="module")
def data() -> Interactions:
    return synthetic(users=2_000, items=400, interactions_per_user=25, groups=4, categories=8, seed=1)


def test_the_seed_decides() -> None:
    small = {"users": 50, "items": 30, "interactions_per_user": 8}
    assert synthetic(**small, seed=1).content_hash == synthetic(**small, seed=1).content_hash
    assert synthetic(**small, seed=1).content_hash != synthetic(**small, seed=2).content_hash


def test_every_user_has_five_items_and_no_pair_occurs_twice(data: Interactions) -> None:
    facts = data.describe()
    assert facts["users"] == 2_000
    assert facts["min_per_user"] >= 5
    assert facts["distinct_pairs"] == facts["interactions"]
    assert facts["interactions"] == pytest.approx(2_000 * 25, rel=0.05)


def test_activity_is_heavy_tailed(data: Interactions) -> None:
    per_user = np.sort(np.bincount(data.user_index))
    assert per_user.max() > 4 * np.median(per_user)
    assert per_user.max() <= 200


def test_skew_makes_items_popular() -> None:
    def share_of_the_top_tenth(skew: float) -> float:
        some = synthetic(users=2_000, items=200, interactions_per_user=10, affinity=0, skew=skew)
        counts = np.sort(np.bincount(some.item_index, minlength=200))[::-1]
        return float(counts[:20].sum() / counts.sum())

    assert share_of_the_top_tenth(0.0) < 0.17
    assert share_of_the_top_tenth(1.0) > 0.3


def test_groups_prefer_categories(data: Interactions) -> None:
    truth = synthetic_truth(users=2_000, items=400, interactions_per_user=25, groups=4, categories=8, seed=1)
    user = np.array([int(one) - 1 for one in data.users])[data.user_index]
    item = np.array([int(one) - 1 for one in data.items])[data.item_index]
    table = np.zeros((4, 8))
    np.add.at(table, (truth.user_group[user], truth.item_category[item]), 1)
    table /= table.sum(axis=1, keepdims=True)
    favourites = np.sort(table, axis=1)[:, -2:].sum(axis=1)  # a quarter of eight categories
    assert (favourites > 0.7).all()
    assert len({tuple(np.argsort(row)[-2:]) for row in table}) > 1


def test_without_affinity_groups_are_alike() -> None:
    options = {"users": 3_000, "items": 160, "groups": 2, "categories": 4, "affinity": 0.0, "skew": 0.0}
    data, truth = synthetic(**options), synthetic_truth(**options)  # type: ignore[arg-type]
    category = truth.item_category[np.array([int(one) - 1 for one in data.items])][data.item_index]
    assert np.bincount(category) / len(data) == pytest.approx([0.25] * 4, abs=0.01)


def test_time_runs_forward_and_says_nothing_about_popularity(data: Interactions) -> None:
    stamps = data.frame["timestamp"].to_numpy()
    same_user = data.user_index[1:] == data.user_index[:-1]
    assert (np.diff(stamps)[same_user] > 0).all()
    assert data.time == "real"
    assert stamps.min() >= 1_577_836_800
    popularity = np.bincount(data.item_index)[data.item_index]
    first, last = np.append(True, ~same_user), np.append(~same_user, True)
    assert popularity[last].mean() == pytest.approx(popularity[first].mean(), rel=0.08)
    rising = np.diff(data.item_index)[same_user] > 0
    assert rising.mean() == pytest.approx(0.5, abs=0.02)


def test_ratings_are_stars(data: Interactions) -> None:
    assert set(data.frame["rating"]) == {1.0, 2.0, 3.0, 4.0, 5.0}


def test_few_items_make_few_categories() -> None:
    truth = synthetic_truth(users=10, items=6, interactions_per_user=5)
    assert sorted(truth.item_category) == [0, 1, 2, 3, 4, 5]
    assert synthetic(users=10, items=6, interactions_per_user=5).n_users == 10


def test_everybody_can_take_everything() -> None:
    data = synthetic(users=40, items=5, interactions_per_user=5, categories=1, skew=3.0)
    assert data.describe()["density"] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"items": 4},
        {"interactions_per_user": 4.9},
        {"groups": 0},
        {"categories": 0},
        {"affinity": 1.1},
        {"skew": -0.1},
        {"seed": -1},
    ],
)
def test_impossible_recipes(wrong: dict[str, float]) -> None:
    name, value = next(iter(wrong.items()))
    with pytest.raises(ConfedError, match=f"synthetic: {name}={value} is impossible"):
        synthetic(**wrong)  # type: ignore[arg-type]


def test_the_name_is_the_recipe() -> None:
    assert Recipe().name == "synthetic"
    assert Recipe(users=7, seed=2).name == "synthetic:users=7,seed=2"


def test_many_users_are_made_quickly() -> None:
    """A tenth of 200,000 x 20,000, which takes about 5 s and 1 GB."""
    start = time.perf_counter()
    data = synthetic(users=20_000, items=20_000)
    assert time.perf_counter() - start < 10
    assert data.n_users == 20_000


@pytest.mark.parametrize(
    "options",
    [
        {"items": 10**13},
        {"users": 10**11},
        {"groups": 10**12},
        {"users": 10**400},
        {"items": 10**400, "categories": 10**400, "groups": 10**400},
        {"users": 10**9, "interactions_per_user": 1e300, "items": 10**4},
    ],
)
def test_what_cannot_be_held_is_refused_before_it_is_made(options: dict[str, float]) -> None:
    message = r"^synthetic: so many users, .* would take .*TB, the limit is .*B; .* set CONFED_MAX_BYTES to more$"
    with pytest.raises(ConfedError, match=message):
        synthetic(**options)
    with pytest.raises(ConfedError, match=message):
        synthetic_domains(**options)


def test_the_limit_follows_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(users=2_000, items=400, interactions_per_user=25)
    data = synthetic(users=2_000, items=400, interactions_per_user=25)
    assert data.frame.estimated_size() < recipe.size < 4 * data.frame.estimated_size()
    monkeypatch.setenv("CONFED_MAX_BYTES", str(recipe.size - 1))
    with pytest.raises(ConfedError, match="CONFED_MAX_BYTES"):
        synthetic(users=2_000, items=400, interactions_per_user=25)


@pytest.mark.parametrize(
    "options",
    [{"interactions_per_user": float("nan")}, {"interactions_per_user": float("inf")}, {"skew": float("nan")}],
)
def test_numbers_that_are_none_are_impossible(options: dict[str, float]) -> None:
    with pytest.raises(ConfedError, match=r"is impossible; .*nothing infinite"):
        synthetic(**options)


@pytest.mark.parametrize("options", [{"users": "10"}, {"items": 7.5}, {"seed": None}, {"skew": "much"}])
def test_options_of_other_types(options: dict[str, Any]) -> None:
    with pytest.raises(ConfedError, match=r"^synthetic: \w+=.* is not a (whole )?number$"):
        synthetic(**options)


def test_nobody_has_more_than_half_of_the_items_however_many_are_asked_for() -> None:
    assert synthetic(users=5, items=20, interactions_per_user=1e300).describe()["max_per_user"] == 10
