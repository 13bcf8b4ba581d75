from __future__ import annotations

import numpy as np
import pytest

from confed.data.domains import Domains
from confed.data.synthetic_domains import DomainsRecipe, synthetic_domains, synthetic_domains_truth
from confed.errors import ConfedError

SMALL = {"users": 60, "items": 40, "interactions_per_user": 8, "categories": 4}


@pytest.fixture(scope="module")
def data() -> Domains:
    return synthetic_domains(users=800, overlap=0.5, seed=1)


def test_the_seed_decides() -> None:
    assert synthetic_domains(**SMALL, seed=1).content_hash == synthetic_domains(**SMALL, seed=1).content_hash  # type: ignore[arg-type]
    assert synthetic_domains(**SMALL, seed=1).content_hash != synthetic_domains(**SMALL, seed=2).content_hash  # type: ignore[arg-type]


def test_overlap_is_the_share_that_everybody_knows(data: Domains) -> None:
    assert data.names == ("a", "b", "c")
    assert data.n_users == 800
    assert len(data.shared()) == 400
    known = data.known_to()
    assert known[1] > 100
    assert known[2] > 100
    assert synthetic_domains(**SMALL).known_to() == {1: 0, 2: 0, 3: 60}  # type: ignore[arg-type]


def test_the_smallest_overlap_still_makes_domains() -> None:
    for seed in range(5):
        few = synthetic_domains(domains=2, users=2, items=20, interactions_per_user=5, overlap=0.01, seed=seed)
        assert few.known_to()[2] == 1


def test_the_first_domain_is_sparse(data: Domains) -> None:
    per_user = {domain: len(part) / part.n_users for domain, part in data.parts.items()}
    assert 5 <= per_user["a"] < 0.4 * per_user["b"]
    assert per_user["b"] == pytest.approx(20, rel=0.2)
    assert per_user["c"] == pytest.approx(20, rel=0.2)
    assert all(part.describe()["min_per_user"] >= 5 for part in data.parts.values())
    even = synthetic_domains(users=800, sparsity=1.0)
    assert len(even["a"]) == pytest.approx(len(even["b"]), rel=0.1)


def profiles(data: Domains, domain: str, truth: dict[str, int]) -> np.ndarray:  # type: ignore[type-arg]
    """(groups, items) how often each group takes each item."""
    part = data[domain]
    group = np.array([truth[user] for user in part.users])[part.user_index]
    item = np.array([int(one) - 1 for one in part.items])[part.item_index]
    table = np.zeros((4, 300))
    np.add.at(table, (group, item), 1)
    return table / table.sum(axis=1, keepdims=True)


def distances(table: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """How far apart the items of every two groups are."""
    return np.abs(table[:, None] - table[None, :]).sum(axis=2)[~np.eye(len(table), dtype=bool)]


def test_groups_are_the_same_people_everywhere(data: Domains) -> None:
    """In every domain the planted groups are further apart than any two groups made by chance."""
    truth = synthetic_domains_truth(users=800, overlap=0.5, seed=1)
    assert sorted(truth, key=int) == data.users
    assert set(truth.values()) == {0, 1, 2, 3}
    chance = dict(zip(truth, np.random.default_rng(0).permutation(list(truth.values())), strict=True))
    for domain in data.names:
        planted = distances(profiles(data, domain, truth))
        assert planted.min() > distances(profiles(data, domain, chance)).max()


def test_tastes_do_not_carry_over(data: Domains) -> None:
    """An item id means another thing in another domain: what a group likes in b says nothing about c."""
    truth = synthetic_domains_truth(users=800, overlap=0.5, seed=1)
    b, c = (profiles(data, domain, truth) for domain in "bc")
    correlation = np.corrcoef((b - b.mean(axis=0)).ravel(), (c - c.mean(axis=0)).ravel())[0, 1]
    assert abs(correlation) < 0.1


@pytest.mark.parametrize(
    "wrong",
    [{"domains": 1}, {"domains": 27}, {"overlap": 0.0}, {"overlap": 1.1}, {"sparsity": 0.0}, {"users": 0}],
)
def test_impossible_recipes(wrong: dict[str, float]) -> None:
    name, value = next(iter(wrong.items()))
    with pytest.raises(ConfedError, match=f"synthetic: {name}={value} is impossible"):
        synthetic_domains(**wrong)  # type: ignore[arg-type]


def test_the_name_is_the_recipe() -> None:
    assert DomainsRecipe().name == "synthetic:domains=3"
    assert DomainsRecipe(users=7, domains=2, overlap=0.5).name == "synthetic:domains=2,users=7,overlap=0.5"
    assert synthetic_domains(**SMALL).name.startswith("synthetic:domains=3,users=60")  # type: ignore[arg-type]
