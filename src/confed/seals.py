"""Whether a file still is what was written: digests beside it, or in it.

A file of tensors is named in a manifest with its length and digest (`Sealed`). A text carries its digest itself: as a
last comment (`with_seal`), or, in JSON, under a key (`sealed_json`). This tells damage and slips of the hand, not
malice: who can write the file can write its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confed.errors import DamagedError

_KEY = "sha256"
_COMMENT = "# sha256 of the lines above: "


@dataclass(frozen=True)
class Sealed:
    """A file of some folder, as it was written."""

    name: str
    bytes: int
    sha256: str

    def check(self, folder: Path) -> Path:
        """Where it is, if it is there and still the same."""
        path = folder / self.name
        try:
            found = sealed_file(folder, path)
        except OSError as error:
            raise DamagedError(f"{path}: cannot be read ({error.strerror})") from None
        if found.bytes != self.bytes:
            raise DamagedError(f"{path}: has {found.bytes:,} bytes, {self.bytes:,} were written")
        if found != self:
            raise DamagedError(f"{path}: is not what was written (its SHA-256 is another)")
        return path


def sealed_file(folder: Path, path: Path) -> Sealed:
    """A file of the folder, as it is now."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Sealed(path.relative_to(folder).as_posix(), file.tell(), digest)


def read_text(path: Path) -> str:
    """Bytes that are no text become text that no seal fits."""
    try:
        return path.read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise DamagedError(f"{path}: cannot be read ({error.strerror})") from None


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def with_seal(text: str) -> str:
    """Lines of a format whose comments begin with #, and a last one that tells their digest."""
    return f"{text}{_COMMENT}{digest_of(text.encode())}\n"


def without_seal(sealed: str, path: Path) -> str:
    """The text that `with_seal` was given."""
    text, seal, digest = sealed.rpartition(_COMMENT)
    if not seal:
        raise DamagedError(f"{path}: has no digest: it was cut, or written by a confed before 0.1.0 was released")
    if digest != digest_of(text.encode("utf-8", "surrogateescape")) + "\n":
        raise DamagedError(f"{path}: is not what was written (its SHA-256 is another)")
    return text


def sealed_json(content: Mapping[str, Any]) -> str:
    """The content with its digest, as lines for people and programs."""
    return json.dumps({**content, _KEY: _digest(content)}, indent=2) + "\n"


def unsealed_json(text: str, path: Path) -> dict[str, Any]:
    """What `sealed_json` was given."""
    try:
        content = json.loads(text)
        said = content.pop(_KEY)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise DamagedError(f"{path}: is not what was written (no JSON with a digest)") from None
    if said != _digest(content):
        raise DamagedError(f"{path}: is not what was written (its SHA-256 is another)")
    found: dict[str, Any] = content
    return found


def _digest(content: Mapping[str, Any]) -> str:
    """Of the meaning: neither order nor white space counts."""
    return digest_of(json.dumps(content, sort_keys=True).encode())
