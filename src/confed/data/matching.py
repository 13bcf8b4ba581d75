"""Which users several domains share, found out without showing anybody an id.

The domains agree on a salt that the matching party does not know, and hand over the salted hashes of their users' ids
(HMAC-SHA256). Without the salt nobody can try out ids until a hash fits; with it anybody can, so it must stay among
the domains. The matching party learns how many users each domain has and which hashes occur together, nothing else.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from confed.data.interactions import Ints
from confed.errors import ConfedError


@dataclass(frozen=True, eq=False)
class Matching:
    """The people whom at least two domains know, numbered from 0 in the order of their hashes."""

    people: int
    users: Mapping[str, Ints]
    """Per domain, its own numbers of the users it shares with at least one other domain, ascending."""
    numbers: Mapping[str, Ints]
    """Per domain, the numbers of these users among the people."""


def hashed(ids: Iterable[str], salt: bytes) -> list[str]:
    """The salted hash of every id, in the same order."""
    if not salt:
        raise ConfedError("user ids are hashed with a secret salt, got none: without it anybody can try out ids")
    return [hmac.digest(salt, one.encode(), "sha256").hex() for one in ids]


def match(hashes_by_domain: Mapping[str, Sequence[str]]) -> Matching:
    """Who is known to several domains; user i of a domain is the one whose hash stands at place i."""
    tables = {domain: _table(domain, hashes) for domain, hashes in hashes_by_domain.items()}
    counted = pl.concat([_NOBODY, *tables.values()]).group_by("hash").agg(known_to=pl.len())
    people = counted.filter(pl.col("known_to") > 1).sort("hash").with_columns(person=pl.int_range(pl.len()))
    found = {
        domain: table.join(people, on="hash", how="inner").sort("user").select("user", "person")
        for domain, table in tables.items()
    }
    return Matching(
        people=people.height,
        users={domain: _ints(table["user"]) for domain, table in found.items()},
        numbers={domain: _ints(table["person"]) for domain, table in found.items()},
    )


_NOBODY = pl.DataFrame(schema={"hash": pl.String, "user": pl.Int64})


def _table(domain: str, hashes: Sequence[str]) -> pl.DataFrame:
    column = pl.Series("hash", hashes, dtype=pl.String)
    if column.n_unique() != len(column):
        raise ConfedError(f"domain {domain}: two of its users have the same hash; hand in every user once")
    return pl.DataFrame({"hash": column, "user": pl.Series(np.arange(len(column), dtype=np.int64))})


def _ints(column: pl.Series) -> Ints:
    return column.to_numpy().astype(np.int64)
