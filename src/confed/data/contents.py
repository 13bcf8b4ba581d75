"""What a file holds, as bytes and as text, with a remedy where it cannot be had."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

from confed.errors import ConfedError


def content(path: Path) -> bytes:
    """All bytes of a file, decompressed if it is gzipped."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except FileNotFoundError:
        raise ConfedError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfedError(f"{path} is a folder: name a file in it") from None
    except EOFError:
        raise ConfedError(
            f"{path}: the gzip data stops before its end; the file is truncated, copy or download it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ConfedError(f"{path}: damaged gzip data ({error}); copy or download the file again") from error
    except OSError as error:
        raise ConfedError(f"{path}: cannot be read ({error.strerror or error})") from error


def decoded(path: Path, data: bytes, encoding: str) -> str:
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except LookupError:
        raise ConfedError(
            f"{path}: unknown text encoding {encoding!r}; usual ones are utf-8, latin-1, utf-16"
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfedError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not {encoding} text; if the file is in "
            "another encoding, name it with --encoding, for instance latin-1 or utf-16"
        ) from None
    if not text.strip():
        raise ConfedError(f"{path} is empty: expected one interaction per line")
    return text


def first_line(text: str) -> str:
    """The first that is not empty."""
    line = re.search(r"[^\r\n]+", text)
    return line.group() if line else ""
