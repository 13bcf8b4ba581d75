from __future__ import annotations

import hashlib
import hmac
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.data.matching import hashed, match
from confed.errors import ConfedError

SALT = b"between us"


def test_hashes_are_hmac_sha256() -> None:
    assert hashed(["7", "é"], SALT) == [hmac.new(SALT, one.encode(), hashlib.sha256).hexdigest() for one in ("7", "é")]
    assert hashed(["7"], SALT) != hashed(["7"], b"another salt")
    assert hashed([], SALT) == []
    with pytest.raises(ConfedError, match="secret salt"):
        hashed(["7"], b"")


def test_people_are_numbered_by_their_hash() -> None:
    found = match({"book": ["d", "a", "c"], "music": ["b", "c", "d"], "movie": ["c", "z"]})
    assert found.people == 2  # c and d
    assert {domain: list(users) for domain, users in found.users.items()} == {
        "book": [0, 2],
        "music": [1, 2],
        "movie": [0],
    }
    assert {domain: list(numbers) for domain, numbers in found.numbers.items()} == {
        "book": [1, 0],
        "music": [0, 1],
        "movie": [0],
    }


domains = st.dictionaries(
    st.sampled_from(["book", "music", "movie", "game"]),
    st.lists(st.integers(0, 15).map(str), unique=True, max_size=16),
    max_size=4,
)


@given(domains)
def test_matching_against_a_dictionary(ids: dict[str, list[str]]) -> None:
    hashes = {domain: hashed(some, SALT) for domain, some in ids.items()}
    known: dict[str, int] = {}
    for some in hashes.values():
        for one in some:
            known[one] = known.get(one, 0) + 1
    people = {one: number for number, one in enumerate(sorted(one for one, count in known.items() if count > 1))}
    found = match(hashes)
    assert found.people == len(people)
    assert list(found.users) == list(found.numbers) == list(ids)
    for domain, some in hashes.items():
        assert list(found.users[domain]) == [place for place, one in enumerate(some) if one in people]
        assert list(found.numbers[domain]) == [people[one] for one in some if one in people]
        assert found.users[domain].dtype == found.numbers[domain].dtype == np.int64


def test_a_user_is_handed_in_once() -> None:
    with pytest.raises(ConfedError, match="domain music: two of its users have the same hash"):
        match({"book": ["a"], "music": ["b", "b"]})


def test_many_users_are_matched_quickly() -> None:
    start = time.perf_counter()
    hashes = hashed(map(str, range(100_000)), SALT)
    found = match({"book": hashes, "music": hashes[50_000:]})
    assert time.perf_counter() - start < 10
    assert found.people == 50_000
