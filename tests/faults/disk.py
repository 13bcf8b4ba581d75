"""A disk that may lose power: what is sure to be on it, and what might be there instead.

While watched, a folder's files are followed through the calls that make writes durable. A file's bytes are sure once
it was synced; a name, its absence, or what it leads to are sure once its folder was. Of everything else a loss of power
may leave the old or the new, and of a file that was not synced any beginning, or zeros where bytes should be.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CALLS = ("fsync", "replace", "unlink", "mkdir")
"""Of `os`: whoever writes durably goes through them."""


@dataclass(eq=False)
class _File:
    """What one file is, whatever it is called."""

    synced: bytes | None = None
    """Its bytes when it was last synced."""


@dataclass
class _Folder:
    synced: dict[str, _File | None] = field(default_factory=dict)
    """Which names were there when it was last synced, and what they led to; None is a folder."""


class Disk:
    """Watches `root`. Before and after each call, `on_call` is told what is about to happen or has happened."""

    def __init__(self, root: Path, on_call: Callable[[str], None] = lambda _: None) -> None:
        self.root = root.resolve()
        self.on_call = on_call
        self._files: dict[int, _File] = {}  # by inode, of those that have a name
        self._folders: dict[Path, _Folder] = {self.root: _Folder()}

    @contextmanager
    def watched(self) -> Iterator[Disk]:
        real = {name: getattr(os, name) for name in CALLS}

        def instead(name: str) -> Callable[..., Any]:
            def call(*arguments: Any, **keywords: Any) -> Any:
                paths = [path for path in map(self._path, arguments) if path is not None]
                if not paths:
                    return real[name](*arguments, **keywords)
                self.on_call(f"before {name}")
                gone = [self._known(path) for path in paths[-1:]] if name in ("replace", "unlink") else []
                found = real[name](*arguments, **keywords)
                self._note(name, paths, gone)
                self.on_call(f"after {name}")
                return found

            return call

        try:
            for name in CALLS:
                setattr(os, name, instead(name))
            yield self
        finally:
            for name, call in real.items():
                setattr(os, name, call)

    def after_power_loss(self, into: Path, seed: int) -> None:
        """One of the things that may be found in the folder when the power is back."""
        rng = random.Random(seed)
        for path in self._folders:
            if path == self.root or self._may_be_there(path, rng):
                (into / path.relative_to(self.root)).mkdir(parents=True, exist_ok=True)
        for path, folder in self._folders.items():
            target = into / path.relative_to(self.root)
            if target.is_dir():
                for name in sorted(folder.synced.keys() | _names(path)):
                    self._leave(path / name, folder.synced.get(name), target / name, rng)

    def is_sure(self, path: Path) -> bool:
        """Whether a loss of power leaves something of this name: it and all folders above stand in synced ones."""
        path = path if path.is_absolute() else path.absolute()
        if path == self.root:
            return True
        folder = self._folders.get(path.parent)
        return folder is not None and path.name in folder.synced and self.is_sure(path.parent)

    def _may_be_there(self, path: Path, rng: random.Random) -> bool:
        parent = self._folders.get(path.parent)
        return (parent is not None and path.name in parent.synced) or rng.random() < 0.5

    def _leave(self, path: Path, before: _File | None, target: Path, rng: random.Random) -> None:
        """The file that the name led to when its folder was synced, or what it leads to now."""
        now = self._known(path) if path.is_file() else None
        chosen = rng.choice([before, now])
        if chosen is now and now is not None:
            target.write_bytes(_torn(now.synced, path.read_bytes(), rng))
        elif chosen is not None:
            target.write_bytes(chosen.synced or b"")

    def _path(self, argument: Any) -> Path | None:
        """Of a call's argument, if it lies in the folder; a descriptor's too."""
        if isinstance(argument, int):
            argument = f"/proc/self/fd/{argument}"
            path = Path(os.readlink(argument)) if os.path.lexists(argument) else None  # noqa: PTH115
        elif isinstance(argument, str | os.PathLike):
            path = Path(os.path.abspath(argument))  # noqa: PTH100 - links are not followed
        else:
            return None
        return path if path and path.is_relative_to(self.root) else None

    def _known(self, path: Path) -> _File | None:
        try:
            return self._files.setdefault(path.stat().st_ino, _File())
        except FileNotFoundError:
            return None

    def _note(self, name: str, paths: list[Path], gone: list[_File | None]) -> None:
        self._files = {inode: file for inode, file in self._files.items() if file not in gone}
        path = paths[-1]
        if name == "mkdir":
            self._folders[path] = _Folder()
        elif name == "fsync" and path.is_dir():
            entries = {child.name: None if child.is_dir() else self._known(child) for child in path.iterdir()}
            self._folders.setdefault(path, _Folder()).synced = entries  # another process may have made it
        elif name == "fsync" and (file := self._known(path)) is not None:
            file.synced = path.read_bytes()


def _names(path: Path) -> set[str]:
    return {child.name for child in path.iterdir() if child.is_file()} if path.is_dir() else set()


def _torn(synced: bytes | None, now: bytes, rng: random.Random) -> bytes:
    """Bytes that were synced stay; of those that were added since, some, or zeros."""
    if synced == now:
        return now
    sure = len(synced) if synced is not None and now.startswith(synced) else 0
    end = rng.randint(sure, len(now))
    return now[:end] + b"\0" * (rng.randint(0, len(now) - end) if rng.random() < 0.3 else 0)
