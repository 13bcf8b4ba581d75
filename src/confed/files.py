"""Files that are whole or not there, whatever happens meanwhile: a kill, a full disk, a loss of power."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from confed.errors import UnwritableError

_DRAFT, _TEMPORARY, _KEPT = ".part", "confed-run-", ".kept"
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room for it"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "write somewhere else, or give yourself the right to"),
    **dict.fromkeys(
        (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST), "its folder is not there, or something else is"
    ),
    **dict.fromkeys((errno.EIO, errno.EBUSY, errno.ESTALE, errno.ETIMEDOUT), "the disk does not take it"),
    errno.ENAMETOOLONG: "give it a shorter name",
}
"""What to do when something cannot be written."""


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path to write to that becomes `path` if all goes well, and disappears otherwise."""
    with drafted(path) as draft:
        yield draft
        settle(draft, path)


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, in a folder that is made if need be. Whatever is still there at the end goes;
    so do drafts that other processes left behind when they were killed.
    """
    draft = path.with_name(f".{path.name}.{_here()}-{os.getpid()}-{uuid.uuid4().hex[:8]}{_DRAFT}")
    with unwritable_said(path):
        make_folder(path.parent)
        sweep_drafts(path.parent, path.name)
        try:
            yield draft
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def unwritable_said(path: Path, remedy: str = "") -> Iterator[None]:
    """What the system says about writing, in words that tell what to do: the `remedy`, or what its error calls for."""
    try:
        yield
    except Exception as error:
        number = _number(error)
        if number not in _REMEDIES:
            raise
        told = remedy or _REMEDIES[number]
        raise UnwritableError(f"{path}: cannot be written ({os.strerror(number)}); {told}") from None


def _number(error: Exception) -> int | None:
    """The system's number of an error; libraries in Rust tell it in words."""
    if isinstance(error, OSError):
        return error.errno
    told = re.search(r"\(os error (\d+)\)", str(error))
    return int(told[1]) if told else None


def temporary_folder() -> Path:
    """A fresh one, after those of processes that were killed. Whoever wants to keep it says so (`keep_folder`)."""
    sweep_temporary()
    return Path(mkdtemp(prefix=temporary_prefix()))


def sweep_temporary() -> None:
    """Remove temporary folders of processes that were killed."""
    for left in Path(gettempdir()).glob(f"{_TEMPORARY}{_here()}-*"):
        with suppress(OSError):  # somebody else's
            process = left.name.removeprefix(f"{_TEMPORARY}{_here()}-").partition("-")[0]
            if _is_gone(process) and not (left / _KEPT).exists():
                shutil.rmtree(left, ignore_errors=True)


def temporary_prefix() -> str:
    """What this process calls temporary folders by."""
    return f"{_TEMPORARY}{_here()}-{os.getpid()}-"


def keep_folder(path: Path) -> None:
    """Nobody removes this temporary folder but its owner. On a full disk it is kept until the next run."""
    with suppress(OSError):
        (path / _KEPT).touch()


def settle(draft: Path, path: Path) -> None:
    """Make what was drafted `path`. The content is on the disk before it has its name, and the name afterwards."""
    sync(draft)
    os.replace(draft, path)  # noqa: PTH105 - atomic also where the target exists
    sync(path.parent)


def make_folder(path: Path) -> None:
    """With all above it; each of them stands in the one above before anything is put into it."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk; some disks have no such thing for folders."""
    folder = path.is_dir()
    if folder and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if folder or os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not folder or error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def sweep_drafts(folder: Path, name: str = "") -> None:
    """Remove drafts, of one file or of all in the folder, whose process is gone."""
    for draft in folder.glob(f".{_literally(name) or '*'}.{_here()}-*{_DRAFT}"):
        made_by = re.search(rf"-(\d+)-[0-9a-f]{{8}}{re.escape(_DRAFT)}$", draft.name)
        if made_by and _is_gone(made_by[1]):
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _here() -> str:
    """This machine, as part of a name: of processes on others one cannot tell whether they are gone."""
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname()) or "here"


def _is_gone(process: str) -> bool:
    from psutil import pid_exists  # noqa: PLC0415 - seldom needed, and help must be quick

    return process.isdecimal() and len(process) < 10 and not pid_exists(int(process))


def _literally(name: str) -> str:
    """As a pattern that means just this name."""
    return re.sub(r"([\[*?])", r"[\1]", name)
