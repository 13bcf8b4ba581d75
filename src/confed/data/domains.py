"""Domains: the interactions of several companies (or departments) that know some of the same people.

A user id means the same person in every domain; an item id means something only within its own. The
domains have an order, because CDRIB's cold split calls them the first and the second (D-5). Users who are
known to some domains only are normal; a domain that knows nobody whom another one knows is a mistake, most often ids
that are written in another way, and it is refused here, before a method silently learns nothing from it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from confed.data.columns import ROLES
from confed.data.interactions import Interactions, codes
from confed.data.reading import refuse
from confed.data.shelf import MANIFEST
from confed.data.sources import Notice
from confed.errors import ConfedError, said_of, unknown_name
from confed.files import written_beside
from confed.visible import shown

_NAME = r"[A-Za-z0-9_-]+"


@dataclass(frozen=True, eq=False, repr=False)
class Domains:
    """Interactions by domain. The constructor checks that they belong together; most callers want `of`."""

    parts: Mapping[str, Interactions]
    """At least two, in an order that counts; each is called by the name of its domain."""
    name: str = "data"

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ConfedError(
                f"{self.name}: several domains are at least two, got {', '.join(map(str, self.parts)) or 'none'}; "
                "give one file per domain, such as book=a.csv,music=b.csv"
            )
        for domain in self.parts:
            if not isinstance(domain, str) or not re.fullmatch(_NAME, domain):
                raise ConfedError(f"domain name {domain!r}: use letters, digits, dashes and underscores")
        named = {domain: _called(domain, part) for domain, part in self.parts.items()}
        object.__setattr__(self, "parts", named)
        for domain, stranger in zip(self.names, ~self._knows_a_shared_user(), strict=True):
            if stranger:
                raise _NoSharedUserError(self, domain)

    @classmethod
    def of(cls, source: Any, name: str | None = None, *, notice: Notice | None = None, **reading: Any) -> Domains:
        """From a mapping of domain to what `Interactions.of` takes, a folder that `save` wrote, or a Domains.

        The options are those of `Interactions.of` and count for every domain.
        """
        if isinstance(source, Domains):
            refuse(reading, source.name, "a Domains")
            return source if name in {None, source.name} else replace(source, name=name)
        if isinstance(source, Mapping):
            reading["notice"] = notice
            parts = {domain: _read_part(domain, part, reading) for domain, part in source.items()}
            return cls(parts, name or "+".join(map(str, source)))
        if not isinstance(source, str | Path):
            raise ConfedError(
                f"cannot read domains from a {type(source).__name__}: give a mapping of domain to file or frame"
            )
        if reading:
            raise ConfedError(f"{', '.join(reading)}: these options are for files, {source} is a folder of domains")
        return _read_folder(Path(source), name)

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def __getitem__(self, domain: str) -> Interactions:
        if domain not in self.parts:
            raise unknown_name("domain", str(domain), self.names)
        return self.parts[domain]

    def __repr__(self) -> str:
        held = "; ".join(f"{domain}: {part.n_items:,} items, {len(part):,}" for domain, part in self.parts.items())
        return f"Domains({shown(self.name)}: {self.n_users:,} users, {len(self):,} interactions; {held})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.parts)

    @property
    def users(self) -> list[str]:
        """Everybody whom some domain knows; numerically sorted if all ids are integers, else as text."""
        return self._people[0]

    @property
    def n_users(self) -> int:
        return len(self.users)

    @cached_property
    def content_hash(self) -> str:
        return joint_hash({domain: part.content_hash for domain, part in self.parts.items()})

    @cached_property
    def _people(self) -> tuple[list[str], NDArray[np.bool_]]:
        """All ids, and (users, domains) who is known where."""
        ids, code = codes(pl.concat([pl.Series("user", part.users) for part in self.parts.values()]))
        domain = np.repeat(np.arange(len(self.parts)), [part.n_users for part in self.parts.values()])
        known = np.zeros((len(ids), len(self.parts)), dtype=bool)
        known[code.to_numpy(), domain] = True
        return ids, known

    def _knows_a_shared_user(self) -> NDArray[np.bool_]:
        known = self._people[1]
        return np.asarray(known[known.sum(axis=1) > 1].any(axis=0))

    def known_to(self) -> dict[int, int]:
        """How many users are known to exactly one domain, to two, ..., to all."""
        counts = np.bincount(self._people[1].sum(axis=1), minlength=len(self.parts) + 1)
        return {domains: int(counts[domains]) for domains in range(1, len(self.parts) + 1)}

    def shared(self) -> list[str]:
        """The ids that every domain knows."""
        ids, known = self._people
        return [ids[place] for place in np.flatnonzero(known.all(axis=1))]

    def describe(self) -> dict[str, Any]:
        """The figures of every domain, and how far the domains know the same people."""
        known = self._people[1]
        pairs = itertools.combinations(range(len(self.parts)), 2)
        return {
            "domains": {domain: part.describe() for domain, part in self.parts.items()},
            "users": self.n_users,
            "interactions": len(self),
            "known_to": self.known_to(),
            "shared": {
                f"{self.names[one]} & {self.names[other]}": int((known[:, one] & known[:, other]).sum())
                for one, other in pairs
            },
            "content_hash": self.content_hash,
        }

    # --- filters ----------------------------------------------------------------------------------------------

    def keep_users(self, min_interactions: int, *, distinct: bool) -> Domains:
        """Each domain without its users that have fewer rows there, or fewer `distinct` items."""
        if min_interactions <= 1:
            return self
        parts = {domain: part.keep_users(min_interactions, distinct=distinct) for domain, part in self.parts.items()}
        return self._after(f"keeping users with {min_interactions} interactions (--min-interactions)", parts)

    def keep_shared(self, min_interactions: int, *, distinct: bool) -> Domains:
        """Only users who have so many rows, or `distinct` items, in every domain."""
        rows = _in_every_domain(self._rows(), len(self.parts), min_interactions, distinct=distinct)
        what = f"keeping users with {min_interactions} interactions in every domain"
        return self._with_rows(what, rows)

    def positive(self, min_rating: float) -> Domains:
        """Only interactions that are rated so high."""
        rows = self._rows().filter(pl.col("rating") >= min_rating)
        return self._with_rows(f"keeping ratings of at least {min_rating:g}", rows)

    def core(self, users: int, items: int) -> Domains:
        """Users with at least `users` rows in every domain, items with at least `items` (D-3).

        A dropped item can leave a user with too few rows and the other way round, so both rules are applied until
        they change nothing. What is left does not depend on which rule goes first.
        """
        before, rows = -1, self._rows()
        while before != rows.height:
            before = rows.height
            rows = _in_every_domain(rows, len(self.parts), users, distinct=False)
            rows = rows.filter(pl.len().over("domain", "item") >= items)
        return self._with_rows(f"the core of {users} rows per user in every domain and {items} per item", rows)

    def _rows(self) -> pl.DataFrame:
        return pl.concat([part.frame.with_columns(domain=pl.lit(domain)) for domain, part in self.parts.items()])

    def _with_rows(self, what: str, rows: pl.DataFrame) -> Domains:
        parts = {}
        for domain, part in self.parts.items():
            frame = rows.filter(pl.col("domain") == domain).select(ROLES)
            if frame.height == 0:
                raise ConfedError(f"{self.name}: {what} leaves domain {domain} no interactions; ask for less")
            parts[domain] = part if frame.height == len(part) else replace(part, frame=frame)
        return self._after(what, parts)

    def _after(self, what: str, parts: Mapping[str, Interactions]) -> Domains:
        try:
            return replace(self, parts=parts)
        except _NoSharedUserError as error:
            raise ConfedError(
                f"{self.name}: {what} leaves domain {error.domain} nobody whom another domain knows; ask for less"
            ) from None

    # --- folders ----------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write a folder that `Domains.of(folder)` reads back whole.

        A file's name tells its content and the manifest comes last, so a reader finds the old domains or the new
        ones, never some of both; files that only the old manifest names are removed at the end.
        """
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ConfedError(f"{folder} is a file: domains are saved as a folder, give another name")
        old = _files_of(folder)
        files = {domain: f"{domain}-{part.content_hash[:12]}.parquet" for domain, part in self.parts.items()}
        new = set(files.values())
        try:
            for domain, part in self.parts.items():
                part.save(folder / files[domain])
            with written_beside(folder / MANIFEST) as draft:
                draft.write_text(json.dumps({"name": self.name, "domains": files}, indent=2) + "\n", encoding="utf-8")
        except BaseException:
            _remove(folder, new - old)
            raise
        _remove(folder, old - new)
        return folder


def joint_hash(parts: Mapping[str, str]) -> str:
    """SHA-256 of the domains' names and content hashes, in their order."""
    return hashlib.sha256(json.dumps(list(parts.items())).encode()).hexdigest()


def _called(domain: str, part: Interactions) -> Interactions:
    return part if part.name == domain else replace(part, name=domain)


def _read_part(domain: str, source: Any, reading: Mapping[str, Any]) -> Interactions:
    with said_of(f"domain {domain}"):
        return Interactions.of(source, name=domain, **reading)


def _read_folder(folder: Path, name: str | None) -> Domains:
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise ConfedError(f"{folder}: not a folder of domains (it has no {MANIFEST}); `confed data import` makes one")
    try:
        told = json.loads(manifest.read_text("utf-8"))
        files = {str(domain): folder / Path(file).name for domain, file in told["domains"].items()}
        known_as = str(told["name"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfedError(f"{manifest}: damaged ({error}); import the domains again") from None
    return Domains({domain: Interactions.of(file) for domain, file in files.items()}, name or known_as)


def _files_of(folder: Path) -> set[str]:
    """The files that a folder's manifest names; none where there is no manifest that can be read."""
    try:
        return {Path(file).name for file in json.loads((folder / MANIFEST).read_text("utf-8"))["domains"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def _remove(folder: Path, files: set[str]) -> None:
    for file in files:
        (folder / file).unlink(missing_ok=True)


def _in_every_domain(rows: pl.DataFrame, domains: int, least: int, *, distinct: bool) -> pl.DataFrame:
    """Rows of users who have at least `least` of them in each of the domains."""
    count = (pl.col("item").n_unique() if distinct else pl.len()).over("domain", "user")
    enough = rows.filter(count >= least)
    return enough.filter(pl.col("domain").n_unique().over("user") == domains)


# --- ids that do not meet -------------------------------------------------------------------------------------


class _NoSharedUserError(ConfedError):
    """A domain that knows nobody whom another one knows."""

    def __init__(self, data: Domains, domain: str) -> None:
        self.domain = domain
        kinds = {name: _kind(part.users) for name, part in data.parts.items()}
        examples = ", ".join(f"{name} has {kinds[name]} such as {part.users[0]!r}" for name, part in data.parts.items())
        others = ", ".join(name for name in data.names if name != domain)
        strange = all(kinds[domain] != kind for name, kind in kinds.items() if name != domain)
        reason = f"; domain {domain} has user ids of another type" if strange else ""
        super().__init__(
            f"{data.name}: domain {domain} shares no user with {others}{reason}: {examples}; a person must have "
            "the same id in every domain: write the ids in the same way, or name another user column "
            "(--user-column)"
        )


def _kind(ids: list[str]) -> str:
    """What the ids of a domain look like."""
    looks = {
        "whole numbers": r"[+-]?\d+",
        "numbers with a decimal point": r"[+-]?(\d+\.?\d*|\.\d+)",
    }
    return next((kind for kind, look in looks.items() if all(re.fullmatch(look, one) for one in ids)), "text")
