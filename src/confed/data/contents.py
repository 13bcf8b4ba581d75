"""What a file holds, as bytes and as text, with a remedy where it cannot be had."""

from __future__ import annotations

import codecs
import gzip
import os
import re
import stat
import zlib
from pathlib import Path

from confed.data.limits import BYTES
from confed.errors import ConfedError

_GZIP = b"\x1f\x8b"
_NOT_FILES = {
    stat.S_ISDIR: "is a folder: name a file in it",
    stat.S_ISFIFO: "is a pipe: write what comes out of it into a file, and name that",
    stat.S_ISSOCK: "is a socket: name a file",
    stat.S_ISCHR: "is a device: name a file",
    stat.S_ISBLK: "is a device: name a file",
}
_NOT_OF_FILES = {"idna", "punycode", "undefined"}
"""Python knows these among its encodings of text, but no file is written in them."""


def own_path(source: str | Path) -> Path:
    """The path that somebody wrote, with ~ for the home folder; what looks so and is none stays as it is."""
    return Path(os.path.expanduser(source))  # noqa: PTH111 - pathlib raises where nobody has that name


def exists(path: Path) -> bool:
    """Whether there is something; what cannot be a name is not there."""
    return os.path.exists(path)  # noqa: PTH110 - pathlib raises where a name is too long


def require_file(path: Path) -> int:
    """The size of a regular file; anything else is refused, because it may make us wait, or never end."""
    try:
        str(path).encode()
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ConfedError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfedError(f"{_short(str(path))}: cannot be read ({error.strerror or error})") from None
    except ValueError:
        raise ConfedError(f"{_short(repr(str(path)))} cannot be the name of a file: rename it") from None
    for is_kind, message in _NOT_FILES.items():
        if is_kind(found.st_mode):
            raise ConfedError(f"{path} {message}")
    return found.st_size


def content(path: Path) -> bytes:
    """All bytes of a file, decompressed if it is gzipped."""
    BYTES.require(require_file(path), f"{path} has")
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP
            file.seek(0)
            if not zipped:
                return BYTES.read(file, path)
            with gzip.GzipFile(fileobj=file) as unpacked:
                return BYTES.read(unpacked, path)
    except EOFError:
        raise ConfedError(
            f"{path}: the gzip data stops before its end; the file is truncated, copy or download it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ConfedError(f"{path}: damaged gzip data ({error}); copy or download the file again") from error
    except OSError as error:
        raise ConfedError(f"{path}: cannot be read ({error.strerror or error})") from error


def decoded(path: Path, data: bytes, encoding: str) -> str:
    codec = _codec(path, encoding)
    try:
        text = data.decode(codec).removeprefix("\ufeff")
        if codec != "utf-8":
            _require_no_half_character(path, text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfedError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not {encoding} text; if the file is in "
            "another encoding, name it with --encoding, for instance latin-1 or utf-16"
        ) from None
    except UnicodeError as error:
        raise ConfedError(f"{path}: not {encoding} text ({error}); name its encoding with --encoding") from None
    if not text.strip():
        raise ConfedError(f"{path} is empty: expected one interaction per line")
    return text


def _codec(path: Path, encoding: str) -> str:
    """The name by which Python knows a text encoding."""
    try:
        found = codecs.lookup(encoding)
        if found._is_text_encoding and found.name not in _NOT_OF_FILES:
            return found.name
    except (LookupError, ValueError):
        pass  # told below
    raise ConfedError(
        f"{path}: unknown text encoding {_short(encoding)!r} (--encoding); usual ones are utf-8, latin-1, utf-16"
    )


def _require_no_half_character(path: Path, text: str) -> None:
    half = re.search("[\ud800-\udfff]", text)
    if half:
        line = text.count("\n", 0, half.start()) + 1
        raise ConfedError(
            f"{path}, line {line}: half a character (the lone surrogate U+{ord(half.group()):04X}); remove it"
        )


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"


def first_line(text: str) -> str:
    """The first that is not blank."""
    lines = (found.group() for found in re.finditer(r"[^\r\n]+", text))
    return next(filter(str.strip, lines), "")
