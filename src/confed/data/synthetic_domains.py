"""Made-up interactions of several domains that know the same people, with a known structure.

A person belongs to the same group everywhere. What a group likes, which items are popular and who is active is drawn
for every domain anew, so nothing but the group carries over from one domain to another: a method that gains from the
other domains has found the groups. The first domain is sparse, so that there is something to gain.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.synthetic import Recipe, Truth, generator, make_rows, make_truth
from confed.errors import ConfedError


@dataclass(frozen=True)
class DomainsRecipe(Recipe):
    """What `synthetic_domains` can be asked for; `items` and the rest are figures of each domain."""

    users: int = 600
    """People in all."""
    items: int = 300
    interactions_per_user: float = 20.0
    groups: int = 4
    categories: int = 12
    domains: int = 3
    """Called a, b, c, ..."""
    overlap: float = 1.0
    """Share of the people whom every domain knows, one person at least; the others miss one domain or more."""
    sparsity: float = 0.25
    """The first domain has so many of the interactions that its users would have elsewhere, five at least."""

    def __post_init__(self) -> None:
        super().__post_init__()
        most = len(string.ascii_lowercase)
        faults = {
            "domains": not 2 <= self.domains <= most,
            "overlap": not 0 < self.overlap <= 1,
            "sparsity": not 0 < self.sparsity <= 1,
        }
        for name, wrong in faults.items():
            if wrong:
                raise ConfedError(
                    f"synthetic: {name}={getattr(self, name)} is impossible; it takes 2 to {most} domains, overlap "
                    "and sparsity above 0 and at most 1"
                )

    @property
    def size(self) -> int:
        return self.domains * super().size

    @property
    def names(self) -> str:
        return string.ascii_lowercase[: self.domains]

    def told(self) -> dict[str, Any]:
        """The number of domains is always told: without it one domain is meant."""
        return {"domains": self.domains, **super().told()}


def synthetic_domains(
    *,
    domains: int = DomainsRecipe.domains,
    users: int = DomainsRecipe.users,
    items: int = DomainsRecipe.items,
    interactions_per_user: float = DomainsRecipe.interactions_per_user,
    groups: int = DomainsRecipe.groups,
    categories: int = DomainsRecipe.categories,
    affinity: float = DomainsRecipe.affinity,
    skew: float = DomainsRecipe.skew,
    overlap: float = DomainsRecipe.overlap,
    sparsity: float = DomainsRecipe.sparsity,
    seed: int = DomainsRecipe.seed,
) -> Domains:
    """Seeded domains; `DomainsRecipe` says what the options mean, `synthetic_domains_truth` what is behind them."""
    recipe = DomainsRecipe(
        users, items, interactions_per_user, groups, categories, affinity, skew, seed, domains, overlap, sparsity
    )
    known = _known(recipe)
    parts = {name: _part(recipe, name, np.flatnonzero(known[:, k])) for k, name in enumerate(recipe.names)}
    return Domains(parts, name=recipe.name)


def synthetic_domains_truth(**options: Any) -> dict[str, int]:
    """The planted group of every user id, in all domains of `synthetic_domains` with the same options."""
    groups = make_truth(DomainsRecipe(**options)).user_group
    return {str(person + 1): int(group) for person, group in enumerate(groups)}


def _known(recipe: DomainsRecipe) -> NDArray[np.bool_]:
    """(users, domains) who is known where: some people everywhere, the others in a random part of the domains."""
    rng = generator(recipe, "overlap")
    everywhere = max(1, round(recipe.overlap * recipe.users))
    parts = rng.integers(1, 2**recipe.domains - 1, size=recipe.users)  # a bit per domain; neither none nor all
    parts[rng.permutation(recipe.users)[:everywhere]] = 2**recipe.domains - 1
    return np.asarray((parts[:, None] >> np.arange(recipe.domains)) & 1, dtype=bool)


def _part(recipe: DomainsRecipe, name: str, people: NDArray[np.int64]) -> Interactions:
    truth = make_truth(recipe)
    categories = generator(recipe, f"items{name}").permutation(truth.item_category)
    rows = make_rows(
        replace(recipe, users=len(people)),
        Truth(truth.user_group[people], categories),
        people,
        domain=name,
        sparsity=recipe.sparsity if name == recipe.names[0] else 1.0,
    )
    return Interactions(rows, time="real", name=name)
