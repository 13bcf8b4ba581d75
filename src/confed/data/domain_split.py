"""Data of several domains, cut for evaluation (D-5, decisions.md "Several domains").

`warm`: in every domain each user's last item is held out for the test and the one before for validation, as `split`
does it; the users are those whom all domains know, or, with population=all, every user of every domain. In a domain
without three items of its own a user cannot be cut, and is left out of it. Leaving users out leaves items behind that
nobody trains on; where they are held out nevertheless, `Cut.untrained` says how many.

`cold` is CDRIB's cut, for two domains: of the n shared users, sorted by id, the first 8k with k = ⌊n/10⌋ train in both
domains; the next k are cold in the second domain, the rest in the first: all their rows there are held out. Which half
of the cold users chooses the round and which is the test is not published: a seeded draw (D-42). Users of one domain
only train as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.matching import Matching, hashed, match
from confed.data.split import FEWEST_ITEMS, Cut, Split, TrainingData, split
from confed.errors import ConfedError
from confed.protocol import Protocol
from confed.ragged import Ragged
from confed.random import Stream, fingerprint

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ColdSplit(Cut):
    """One domain in which some users are new: all they did there is held out."""

    validation: Ragged
    """Per user, all its items if it is a cold user for validation; else none."""
    test: Ragged

    @property
    def tested(self) -> Ints:
        return self.test.values


@dataclass(frozen=True)
class DomainSplit:
    """Several domains, cut; and who is known to more than one of them."""

    parts: Mapping[str, Split | ColdSplit]
    matching: Matching
    left_out: int = 0
    """People of the data who are in no domain of the split."""
    numbers: Ints | None = None
    """The places of the domains among all, where these are some of them only."""

    def take(self, places: Ints) -> DomainSplit:
        """What the holder of some domains would have, which are given by their places."""
        names = [list(self.parts)[place] for place in places]
        users, numbers = ({name: of[name] for name in names} for of in (self.matching.users, self.matching.numbers))
        matching = Matching(self.matching.people, users, numbers)
        return DomainSplit({name: self.parts[name] for name in names}, matching, self.left_out, places)

    @property
    def users(self) -> int:
        """People, however many domains know them."""
        return len({user for part in self.parts.values() for user in part.user_ids})

    @property
    def items(self) -> int:
        """Of all domains together."""
        return sum(part.items for part in self.parts.values())


def split_domains(data: Domains, protocol: Protocol, seed: int) -> DomainSplit:
    """Cut `data` for `protocol`; who is shared is found by salted hashes of the ids alone.

    In a simulation the salt is a function of the seed; in a deployment it is the companies' secret.
    """
    parts: dict[str, Split | ColdSplit]
    if protocol.held_out == "cold users":
        parts = dict(_cold(data, seed))
    else:
        taken = _population(data, protocol) if protocol.measures else data
        parts = {name: split(part, protocol, seed) for name, part in taken.parts.items()}
    salt = fingerprint(seed, "matching").to_bytes(8, "little")
    matching = match({name: hashed(part.user_ids, salt) for name, part in parts.items()})
    used = {user for part in parts.values() for user in part.user_ids}
    return DomainSplit(parts, matching, left_out=data.n_users - len(used))


def _population(data: Domains, protocol: Protocol) -> Domains:
    """Everybody who has enough items to be cut, in every domain or in one."""
    keep = data.keep_shared if protocol.population == "shared" else data.keep_users
    try:
        return keep(FEWEST_ITEMS, distinct=protocol.dedupe)
    except ConfedError:
        raise ConfedError(f"{data.name}: {_lack(data, protocol)}") from None


def _lack(data: Domains, protocol: Protocol) -> str:
    """Why nobody is left, and what helps."""
    most = ", ".join(f"{name} {_most_items(part, protocol)}" for name, part in data.parts.items())
    if protocol.population == "shared":
        return (
            f"no user has three items in every domain, to train with, to choose the round and to test "
            f"({len(data.shared())} users are known to all domains; most items of a user: {most}); "
            f"--set population=all takes whoever has three in one domain"
        )
    return (
        f"a domain is left without users who have three items there, to train with, to choose the round and to test, "
        f"and are known to another (most items of a user: {most}): leave that domain out, or bring more of its data"
    )


def _most_items(data: Interactions, protocol: Protocol) -> int:
    items = Ragged.group(data.user_index, data.item_index, data.n_users)
    return int((items.unique() if protocol.dedupe else items).lengths.max())


def _cold(data: Domains, seed: int) -> dict[str, ColdSplit]:
    if len(data.names) != 2:
        raise ConfedError(
            f"--protocol cold cuts two domains (CDRIB's rule), {data.name} has {len(data.names)}: use --protocol warm"
        )
    shared = data.shared()
    tenth = len(shared) // 10
    if tenth < 2:
        raise ConfedError(
            f"--protocol cold takes a tenth of the shared users, two at least, for each domain; {data.name} has "
            f"{len(shared)} in all: it takes 20"
        )
    first, second = data.names
    cold = {second: shared[8 * tenth : 9 * tenth], first: shared[9 * tenth :]}
    return {name: _cut_cold(data[name], cold[name], seed) for name in data.names}


def _cut_cold(data: Interactions, cold: list[str], seed: int) -> ColdSplit:
    number = {user: place for place, user in enumerate(data.users)}
    new = np.array([number[user] for user in cold])
    half = np.zeros(data.n_users, dtype=np.int64)  # 0: trains, 1: validation, 2: test
    half[new] = 1 + np.arange(len(new)) % 2
    half[new] = half[new[Stream.of(seed, "split/cold").order(len(new))]]
    part = half[data.user_index]
    trains, validation, test = (
        Ragged.group(data.user_index[part == kind], data.item_index[part == kind], data.n_users).unique()
        for kind in range(3)
    )
    seen = Ragged.group(data.user_index, data.item_index, data.n_users).unique()
    return ColdSplit(TrainingData(data.n_items, trains, trains), seen, data.users, data.items, validation, test)
