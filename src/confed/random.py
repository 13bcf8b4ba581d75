"""Randomness as a function of (seed, purpose, round, client, slot).

Every draw is a hash of what it is for, never of what was drawn before it. The same client therefore gets the
same negatives whatever the chunk size, the order of clients, the thread or the machine, and a resumed run
continues exactly where the broken one stopped. The hash is the SplitMix64 finaliser, over arrays of numpy and, where a
draw depends on others, in compiled loops.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from confed.compiled import compiled

UInts = NDArray[np.uint64]
Words = TypeVar("Words", np.uint64, UInts)
Ints = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SLOT_BITS = 24
_FEW = 256
"""Draws without replacement up to which every draw is one of what is left; the work grows with the square."""
_NO_SLOT = np.uint64(2**64 - 1)


def _mix(x: Words) -> Words:
    """SplitMix64's finaliser: a bijection on 64 bits in which every input bit moves every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def fingerprint(*parts: object) -> int:
    """A 64-bit number for any printable parts; the root of every stream."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def keyed(*parts: object) -> torch.Generator:
    """Torch's random numbers, depending on `parts` and on nothing else."""
    return torch.Generator().manual_seed(fingerprint(*parts) >> 1)


def standard_normal(like: Tensor, generator: torch.Generator) -> Tensor:
    """In the shape of `like`; drawn in float64, so that every precision sees the same numbers."""
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.dtype)


@dataclass(frozen=True)
class Stream:
    """All draws of one purpose in one round. `client` and `slot` are arrays that broadcast."""

    key: int

    @classmethod
    def of(cls, seed: int, purpose: str, round_: int = 0) -> Stream:
        return cls(fingerprint(seed, purpose, round_))

    def child(self, purpose: str) -> Stream:
        """A stream of its own for another purpose in the same round."""
        return Stream(fingerprint(self.key, purpose))

    def bits(self, client: ArrayLike, slot: ArrayLike = 0) -> UInts:
        """64 random bits for each (client, slot)."""
        clients = np.atleast_1d(np.asarray(client)).astype(np.uint64)
        slots = np.atleast_1d(np.asarray(slot)).astype(np.uint64)
        per_client = _mix((clients + np.uint64(1)) * _GOLDEN ^ np.uint64(self.key))
        return _mix(per_client + (slots + np.uint64(1)) * _GOLDEN)

    def uniform(self, client: ArrayLike, slot: ArrayLike) -> NDArray[np.float64]:
        """In [0, 1)."""
        return (self.bits(client, slot) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def at_least(self, least: float, client: Ints, count: int) -> NDArray[np.bool_]:
        """(n, count): whether `uniform` of the slots 0 … count − 1 is that much, for many of them."""
        found = np.empty((len(client), count), dtype=np.bool_)
        _hold_against(least, np.uint64(self.key), client, found)
        return found

    def integers(self, client: ArrayLike, slot: ArrayLike, high: ArrayLike) -> Ints:
        """Uniform in [0, high); `high` is below 2^32, so the bias of the multiplication is below high / 2^32."""
        top = self.bits(client, slot) >> np.uint64(32)
        return ((top * np.asarray(high).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)

    def distinct(self, client: Ints, slot: Ints, size: Ints, count: int) -> Ints:
        """(n, count) numbers in [0, size), uniform without replacement and in random order.

        Draw j picks one of the size − j numbers that are left; the slots slot·count … slot·count + count − 1 are used.
        Of many, the first different ones of a longer sequence are taken.
        """
        draw = _first_different if count > _FEW else _each_of_what_is_left
        return draw(np.uint64(self.key), client, slot, size, count)

    def shuffled(self, client: Ints, length: Ints, base: int = 0) -> Ints:
        """(n, max length): row u is a random order of 0 … length[u] − 1, then the largest slots as padding.

        Sorting the packed word (40 random bits, slot) gives the order itself, without an argsort, and cannot tie.
        """
        width = int(length.max(initial=0))
        if width >= 1 << _SLOT_BITS:
            raise ValueError(f"at most {(1 << _SLOT_BITS) - 1} slots can be shuffled, got {width}")
        packed = np.empty((len(client), width), dtype=np.uint64)
        _pack_slots(np.uint64(self.key), client, length, np.uint64(base), packed)
        packed.sort(axis=1)
        return _unpack_slots(packed)

    def order(self, length: int) -> Ints:
        """A random order of 0 … length − 1 in which an element's place depends on its own hash alone."""
        return np.argsort(self.bits(np.arange(length)))


_mixed = compiled(_mix)


@compiled
def _of_client(key: np.uint64, client: int) -> np.uint64:
    """The part of the hash that all draws of a client share."""
    return _mixed((np.uint64(client) + np.uint64(1)) * _GOLDEN ^ key)


@compiled
def _bits(of_client: np.uint64, slot: np.uint64) -> np.uint64:
    """`Stream.bits`, of one slot."""
    return _mixed(of_client + (slot + np.uint64(1)) * _GOLDEN)


@compiled
def _hold_against(least: float, key: np.uint64, client: Ints, found: NDArray[np.bool_]) -> None:
    for n in range(len(client)):
        of_client = _of_client(key, client[n])
        for j in range(found.shape[1]):
            found[n, j] = np.float64(_bits(of_client, np.uint64(j)) >> np.uint64(11)) * 2.0**-53 >= least


@compiled
def _pack_slots(key: np.uint64, client: Ints, length: Ints, base: np.uint64, packed: UInts) -> None:
    low = np.uint64(_SLOT_BITS)
    for n in range(len(client)):
        of_client = _of_client(key, client[n])
        for j in range(length[n]):
            slot = np.uint64(j)
            packed[n, j] = (_bits(of_client, slot + base) >> low << low) | slot
        packed[n, length[n] :] = _NO_SLOT


@compiled
def _unpack_slots(packed: UInts) -> Ints:
    found, last = np.empty(packed.shape, dtype=np.int64), packed.shape[1] - 1
    low = np.uint64((1 << _SLOT_BITS) - 1)
    for n in range(len(packed)):
        for j in range(packed.shape[1]):
            found[n, j] = min(np.int64(packed[n, j] & low), last)
    return found


@compiled
def _integer(of_client: np.uint64, slot: np.uint64, high: int) -> np.int64:
    """`Stream.integers`, one."""
    top = _bits(of_client, slot) >> np.uint64(32)
    return np.int64((top * np.uint64(high)) >> np.uint64(32))


@compiled
def _each_of_what_is_left(key: np.uint64, client: Ints, slot: Ints, size: Ints, count: int) -> Ints:
    """Draw j is a rank among the numbers that are left: that number is as much larger as there are taken ones below it.

    `left` has, for every taken number in ascending order, how many that are left lie below it.
    """
    found = np.empty((len(client), count), dtype=np.int64)
    left = np.empty(count, dtype=np.int64)
    for n in range(len(client)):
        of_client = _of_client(key, client[n])
        for j in range(count):
            rank = _integer(of_client, np.uint64(slot[n] * count + j), size[n] - j)
            below = j
            while below > 0 and left[below - 1] > rank:
                left[below] = left[below - 1] - 1
                below -= 1
            left[below] = rank
            found[n, j] = rank + below
    return found


@compiled
def _first_different(key: np.uint64, client: Ints, slot: Ints, size: Ints, count: int) -> Ints:
    """The first `count` different numbers of a sequence drawn with replacement, which a hash table tells apart."""
    found = np.empty((len(client), count), dtype=np.int64)
    places = 4
    while places < 4 * count:
        places *= 2
    table, owner = np.empty(places, dtype=np.int64), np.full(places, -1, dtype=np.int64)
    for n in range(len(client)):
        of_client = _of_client(key, client[n])
        draw = (np.uint64(slot[n]) + np.uint64(1)) << np.uint64(32)
        j = 0
        while j < count:
            number = _integer(of_client, draw, size[n])
            draw += np.uint64(1)
            place = number & (places - 1)
            while owner[place] == n and table[place] != number:
                place = (place + 1) & (places - 1)
            if owner[place] != n:
                owner[place], table[place] = n, number
                found[n, j] = number
                j += 1
    return found
