"""Damage to bytes: what disks, networks, editors and programs do to files."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes], bytes]

_MARKS = (
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xff\xfe\0\0",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"PAR1",
    b"\0",
    b"{",
    b"[",
)
_ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-7", "cp037", "utf-8-sig", "unicode_escape")


def flipped(random: Random, data: bytes) -> bytes:
    """Some bits are others."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def begun_late(random: Random, data: bytes) -> bytes:
    return data[random.randrange(len(data)) :]


def holed(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    return data[:start] + data[start + random.randrange(1, 200) :]


def repeated(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    end = start + random.randrange(1, 200)
    return data[:end] + data[start:end] * random.randrange(1, 4) + data[end:]


def stuffed(random: Random, data: bytes) -> bytes:
    """Bytes where none should be: zeros, ends of lines, quotation marks, anything."""
    more = random.choice((b"\0", b"\n", b"\r", b'"', b"\xff", b"\x1f", b",", b"\0" * 100, random.randbytes(20)))
    place = random.randrange(len(data) + 1)
    return data[:place] + more + data[place:]


def zeroed(random: Random, data: bytes) -> bytes:
    """A block that never reached the disk."""
    start = random.randrange(len(data))
    length = min(random.randrange(1, 100), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def marked(random: Random, data: bytes) -> bytes:
    """The first bytes say that it is something else."""
    return random.choice(_MARKS) + data


def packed(random: Random, data: bytes) -> bytes:
    """Packed once more, with or without damage."""
    whole = gzip.compress(data, mtime=0)
    return random.choice((whole, whole + whole, whole + b"rest", whole[:-4], gzip.compress(whole, mtime=0)))


def reencoded(random: Random, data: bytes) -> bytes:
    return data.decode(errors="replace").encode(random.choice(_ENCODINGS), errors="replace")


def other_line_ends(random: Random, data: bytes) -> bytes:
    return data.replace(b"\n", random.choice((b"\r", b"\r\n", b"\n\n", b"\n\r", b"\x0b", "\u2028".encode(), b"")))


OF_TEXT: tuple[Mutation, ...] = (
    *(flipped, cut, begun_late, holed, repeated, stuffed, zeroed, marked, packed, reencoded, other_line_ends),
)
OF_BINARY: tuple[Mutation, ...] = (flipped, cut, begun_late, holed, repeated, stuffed, zeroed, marked, packed)


def inside_of_zip(random: Random, data: bytes) -> bytes:
    """One part of an archive is damaged or gone, and the archive is sound."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(sorted(parts))
    parts[name] = random.choice(OF_TEXT)(random, parts[name] or b"x")
    if random.random() < 0.1:
        del parts[name]
    again = io.BytesIO()
    with zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(zipfile.ZipInfo(part), content)
    return again.getvalue()


def inside_of_gzip(random: Random, data: bytes) -> bytes:
    return gzip.compress(random.choice(OF_TEXT)(random, gzip.decompress(data)), mtime=0)
