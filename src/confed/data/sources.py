"""Where a dataset's bytes come from: the user's folder, the cache, a wheel, the publisher.

A dataset lives as files at fixed relative paths (`ml-100k/ml-100k.inter`), and these may lie in the folder
that `CONFED_DATA` names or in the cache. If neither has one, the remotes are asked in turn: a PyPI wheel that
happens to carry the file (fetched with pip, which knows the user's mirrors and proxies), then the publisher.

What arrives is unpacked into a folder of its own beside the cache's files, a `Delivery`. Only when its reader has found
in it what should be there is it renamed into place: what is broken off, changed or too large is never found again.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, cast

from confed.data.contents import own_path
from confed.data.limits import BYTES, SupportsRead
from confed.errors import ConfedError, in_python
from confed.files import make_folder, settle, unwritable_said
from confed.visible import visible_lines

Progress = Callable[[str, int, int | None], None]
"""Called with what is being fetched, bytes so far, and bytes in all if known."""
Notice = Callable[[str], None]

ELSEWHERE = "make room or rights there, or set CONFED_CACHE to another folder"
"""What to do where the cache cannot be written."""
_FETCHING = ".fetching"
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
    """Path inside the wheel to path in the cache, the wanted one last."""

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
    return own_path(folder) if folder else None


def cache_dir() -> Path:
    """Where downloads and imports are kept."""
    if own := os.environ.get("CONFED_CACHE"):
        return own_path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "confed"


def at_hand(files: Sequence[str]) -> tuple[str, Path] | None:
    """The first of `files` in the user's folder or, failing that, in the cache, and where it is."""
    for folder in (data_dir(), cache_dir()):
        for file in files:
            if folder is not None and (folder / file).is_file():
                return file, folder / file
    return None


class Delivery:
    """What was fetched, for somebody to look at before it is kept. `begin` is called before anything is."""

    def __init__(self, folder: Path, begin: Callable[[], None]) -> None:
        self._folder = folder
        self._begin = begin
        self._files: list[str] = []

    def find(
        self,
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
        found = self.at_hand(files)
        if found is None and remotes:
            self._begin()
            found = self.at_hand(files)  # somebody may have fetched it meanwhile
        if found is not None:
            return found
        failures = [_absence(files)]
        for remote in remotes:
            try:
                self._fetch(remote, progress)
            except _NOT_DELIVERED as error:
                failures.append(f"{remote}: {error}")
                continue
            announce(f"{name}: downloaded from {remote}. Terms of the data: {terms}", notice)
            found = self.at_hand(files)
            if found is not None:
                return found
            failures.append(f"{remote}: has no {' or '.join(files)}")
        made = f" It is a CSV file with the columns user,item, made from {origin}." if origin else ""
        raise _not_found(name, files, failures, made, terms)

    def at_hand(self, files: Sequence[str]) -> tuple[str, Path] | None:
        """As `at_hand` says, or else what was just fetched."""
        fetched = ((file, self._folder / file) for file in files if file in self._files)
        return at_hand(files) or next(fetched, None)

    def keep(self, files: Sequence[str] | None = None) -> None:
        """What was looked at, all or some of it, becomes part of the cache."""
        for file in self._files:
            if files is None or file in files:
                target = cache_dir() / file
                with unwritable_said(target):
                    make_folder(target.parent)
                    settle(self._folder / file, target)

    def _fetch(self, remote: Remote, progress: Progress | None) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        archive = self._folder / "archive"
        if isinstance(remote, Wheel):
            archive = _pip_download(remote, self._folder, progress)
        else:
            _download(remote.url, archive, progress)
        _check(archive, remote)
        for member, relative in remote.members.items():
            target = self._folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            with _opened(archive, member) as source:
                _copy(source, target, f"{remote} ({member})" if member else str(remote))
        self._files += remote.members.values()


@contextmanager
def delivery(notice: Notice | None = None) -> Iterator[Delivery]:
    """For the time of a download, of which there is one at a time. What nobody keeps is gone afterwards, or, after a
    kill, when the next one begins.
    """
    place = cache_dir() / _FETCHING
    with ExitStack() as stack:

        @cache
        def begin() -> None:
            stack.enter_context(writing_to_cache(notice))
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            shutil.rmtree(place, ignore_errors=True)  # whoever left something there is gone

        yield Delivery(place, begin)


def writing_to_cache(notice: Notice | None = None) -> AbstractContextManager[None]:
    """While one process fetches or imports data, others that want to wait."""
    from confed.locks import locked  # noqa: PLC0415 - lists of what there is must not wait for it

    return locked(
        cache_dir(),
        "the cache",
        wait=_PIP_TIMEOUT,
        waiting=lambda text: announce(text, notice),
        remedy=ELSEWHERE,
    )


def is_being_fetched(path: Path) -> bool:
    """Whether a file is part of a delivery that nobody has kept yet."""
    return _FETCHING in path.parts


class _FetchError(Exception):
    """A remote that did not deliver; the next one is tried."""


_NOT_DELIVERED = (
    *(OSError, http.client.HTTPException, _FetchError),
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),  # damaged or locked archives
)


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
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        told = answer.headers["Content-Length"] or ""
        total = int(told) if told.isdecimal() else None
        done = _copy(answer, target, url, lambda so_far: progress(url, so_far, total) if progress else None)
    if total is not None and done != total:
        raise _FetchError(f"the connection broke after {done:,} of {total:,} bytes")


def _copy(source: SupportsRead, target: Path, label: str, step: Callable[[int], None] = lambda _: None) -> int:
    """Piece by piece, and no more than may be read afterwards: the number of bytes."""
    done, most = 0, BYTES.most
    with target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            done += len(chunk)
            if done > most:
                raise BYTES.exceeded(f"{label}: has more than {BYTES.shown(most)}")
            file.write(chunk)
            step(done)
    return done


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
