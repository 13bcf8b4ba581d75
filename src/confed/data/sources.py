"""Where a dataset's bytes come from: the user's folder, the cache, a wheel, the publisher.

A dataset lives as files at fixed relative paths (`ml-100k/ml-100k.inter`), and these may lie in the folder
that `CONFED_DATA` names or in the cache. If neither has one, the remotes are asked in turn: a PyPI wheel that
happens to carry the file (fetched with pip, which knows the user's mirrors and proxies), then the publisher.
What arrives is checked and renamed into the cache at the end, so a broken download leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from confed.errors import ConfedError, in_python
from confed.files import written_beside
from confed.visible import visible_lines

Progress = Callable[[str, int, int | None], None]
"""Called with what is being fetched, bytes so far, and bytes in all if known."""
Notice = Callable[[str], None]

_CHUNK = 1 << 18
_TIMEOUT = 30.0  # seconds without a byte
_PIP_TIMEOUT = 600.0


@dataclass(frozen=True)
class Wheel:
    """A PyPI distribution that carries the files."""

    requirement: str
    """Name and exact version, such as recbole==1.2.1."""
    sha256: str
    members: Mapping[str, str]
    """Path inside the wheel to path in the cache; the last one is what `find` looks for."""

    def __str__(self) -> str:
        return f"the PyPI wheel {self.requirement}"


@dataclass(frozen=True)
class Download:
    """A file or zip archive at a publisher."""

    url: str
    members: Mapping[str, str]
    """Path inside the archive to path in the cache, the wanted one last; a plain file is the member ""."""
    sha256: str | None = None

    def __str__(self) -> str:
        return self.url


Remote = Wheel | Download


def data_dir() -> Path | None:
    """The folder of the user's own copies, if there is one."""
    folder = os.environ.get("CONFED_DATA")
    return Path(folder).expanduser() if folder else None


def cache_dir() -> Path:
    """Where downloads and imports are kept."""
    if own := os.environ.get("CONFED_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "confed"


def at_hand(files: Sequence[str]) -> tuple[str, Path] | None:
    """The first of `files` in the user's folder or, failing that, in the cache, and where it is."""
    for folder in (data_dir(), cache_dir()):
        for file in files:
            if folder is not None and (folder / file).is_file():
                return file, folder / file
    return None


def find(
    name: str,
    files: Sequence[str],
    remotes: Sequence[Remote] = (),
    *,
    terms: str = "",
    origin: str = "",
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> tuple[str, Path]:
    """Which of `files` there is, and where; fetched if need be, after showing the data's terms."""
    found = at_hand(files)
    if found is not None:
        return found
    failures = [_absence(files)]
    for remote in remotes:
        try:
            file = fetch(remote, progress)
        except (OSError, http.client.HTTPException, zipfile.BadZipFile, _FetchError) as error:
            failures.append(f"{remote}: {error}")
            continue
        announce(f"{name}: downloaded from {remote}. Terms of the data: {terms}", notice)
        return file, cache_dir() / file
    made = f" It is a CSV file with the columns user,item, made from {origin}." if origin else ""
    raise _not_found(name, files, failures, made, terms)


def fetch(remote: Remote, progress: Progress | None = None) -> str:
    """Bring a remote's members into the cache; the relative path of the last."""
    with tempfile.TemporaryDirectory(prefix="confed-") as folder:
        archive = Path(folder) / "archive"
        if isinstance(remote, Wheel):
            archive = _pip_download(remote, Path(folder), progress)
        else:
            _download(remote.url, archive, progress)
        _check(archive, remote)
        for member, relative in remote.members.items():
            with _opened(archive, member) as source, written_beside(cache_dir() / relative) as draft:
                draft.write_bytes(source.read())
    return list(remote.members.values())[-1]


class _FetchError(Exception):
    """A remote that did not deliver; the next one is tried."""


def _pip_download(wheel: Wheel, folder: Path, progress: Progress | None) -> Path:
    if progress:
        progress(str(wheel), 0, None)
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--dest", str(folder), wheel.requirement),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise _FetchError(f"pip did not answer within {_PIP_TIMEOUT:.0f} s") from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        complaints = [line for line in done.stderr.splitlines() if line.strip()]
        raise _FetchError(complaints[-1].strip() if complaints else "pip delivered no wheel")
    return wheels[0]


def _download(url: str, target: Path, progress: Progress | None) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "confed"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, target.open("wb") as file:
        total = int(answer.headers["Content-Length"]) if answer.headers["Content-Length"] else None
        done = 0
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            if progress:
                progress(url, done, total)
    if total is not None and done != total:
        raise _FetchError(f"the connection broke after {done:,} of {total:,} bytes")


def _check(archive: Path, remote: Remote) -> None:
    if remote.sha256 is None:
        return
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != remote.sha256:
        raise ConfedError(
            f"{remote}: the file has SHA-256 {found}, expected {remote.sha256}; it was changed on the way or "
            "by its publisher and was not kept. Try again later, or put a copy you trust into CONFED_DATA"
        )


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[BinaryIO]:
    if not member:
        with archive.open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(archive) as zipped:
        if member not in zipped.namelist():
            raise _FetchError(f"the archive has no {member}")
        with zipped.open(member) as opened:
            yield cast("BinaryIO", opened)


def _absence(files: Sequence[str]) -> str:
    folder = data_dir()
    wanted = " or ".join(files)
    own = "CONFED_DATA: not set" if folder is None else f"CONFED_DATA ({folder}): no {wanted}"
    return f"{own}\n  cache ({cache_dir()}): no {wanted}"


def _not_found(name: str, files: Sequence[str], failures: Sequence[str], made: str, terms: str) -> ConfedError:
    folder = data_dir()
    by_hand = " or ".join(str((folder or Path("$CONFED_DATA")) / file) for file in files)
    how = "" if folder else " and set CONFED_DATA to that folder"
    tried = "\n  ".join(failures)
    told = f"\nTerms of the data: {terms}" if terms else ""
    return ConfedError(
        f"dataset {name} was not found; tried\n  {tried}\n"
        f"To supply it by hand, put the file at {by_hand}{how}.{made}{told}"
    )


def announce(text: str, notice: Notice | None = None) -> None:
    """Tell the user, on standard error unless somebody else wants to."""
    if notice is None:
        print(visible_lines(in_python(text)), file=sys.stderr)
    else:
        notice(text)
