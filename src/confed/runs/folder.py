"""The folder of a run: config.toml, metrics.jsonl, summary.json and checkpoint/, and the data if it came in memory.

Whole files are written beside their place and renamed into it, so that a kill leaves the old one or the new one. All of
them carry digests (`seals.py`), and the checkpoint and the summary the run's id: what was changed, torn or mixed with
another run is refused, not used. One process at a time writes here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from confed.data.contents import exists
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.registry import domain_names, each_file, has_domains
from confed.data.shelf import PAIR
from confed.errors import ConfedError, DamagedError, UnfinishedError
from confed.files import make_folder, sweep_drafts, sync, unwritable_said, written_beside
from confed.locks import LOCK_FILES, holder, locked
from confed.runs.checkpoint import (
    MANIFEST,
    START,
    Checkpoint,
    Manifest,
    Progress,
    read_checkpoint,
    read_manifest,
    write_checkpoint,
    write_manifest,
)
from confed.runs.log import NOTHING, Extent, Log
from confed.runs.settings import Settings
from confed.seals import Sealed, read_text, sealed_file, sealed_json, unsealed_json, with_seal, without_seal
from confed.tensors import load_sealed, save_sealed

T = TypeVar("T")

_LONGEST = 40  # characters of four bytes at most; a name may have 255 bytes


class RunFolder:
    """Reads and writes one run folder."""

    def __init__(self, path: Path, run_id: str | None = None) -> None:
        self.path = path
        self._run_id = run_id
        self._holder: str | None = None
        self.log = Log(path / "metrics.jsonl")

    @classmethod
    def create(cls, settings: Settings, out: Path, *, exact: bool = False) -> RunFolder:
        """A fresh folder below `out`, or `out` itself if `exact`, with its config written; for its owner alone."""
        path = out if exact else out / _name(settings)
        folder = cls(path)
        try:
            make_folder(path.parent)
            path.mkdir(mode=0o700, exist_ok=exact)
            sync(path.parent)
            _require_empty(path)
            with folder.held():
                _require_empty(path)  # somebody else may have begun meanwhile
                folder.write_settings(settings)
        except OSError as error:
            raise ConfedError(f"{path}: cannot make a run folder there ({error.strerror})") from None
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        folder = cls(path)
        if not exists(folder.config_path):
            raise ConfedError(f"{path}: not a run folder (it has no config.toml); `confed run` makes one")
        return folder

    def held(self) -> AbstractContextManager[None]:
        """While somebody writes here nobody else does."""
        return locked(self.path, "the run")

    def on_behalf_of_the_holder(self) -> RunFolder:
        """For a process that the holder of the lock has started: once another one holds it, this one writes no more."""
        self._holder = holder(self.path)
        return self

    def _require_holder(self) -> None:
        if self._holder is not None and holder(self.path) != self._holder:
            raise ConfedError(f"{self.path}: somebody else goes on with the run; its launcher is gone")

    @cached_property
    def run_id(self) -> str:
        """Of the run whose files belong here."""
        return self._run_id or self.settings().run_id

    @property
    def config_path(self) -> Path:
        return self.path / "config.toml"

    @property
    def _data_path(self) -> Path:
        """A copy of data that was handed over in memory, so that the run can be opened again."""
        return self.path / "data.parquet"

    @property
    def _domains_path(self) -> Path:
        """The same for data of several domains: a folder."""
        return self.path / "data"

    @property
    def _data_seals_path(self) -> Path:
        """What the files of the copy were when they were written."""
        return self.path / "data.json"

    @property
    def parts(self) -> Path:
        """Where checkpoints are, also those of sites elsewhere."""
        return self.path / "checkpoint"

    @property
    def _summary_path(self) -> Path:
        return self.path / "summary.json"

    def write_settings(self, settings: Settings) -> None:
        """Where the data lies is told as seen from here: whole paths are nobody else's business."""
        write_text(self.config_path, with_seal(self._with_source(settings, self._seen_from_here).to_toml()))

    def settings(self) -> Settings:
        with _remedy("undo the change: what may be said anew is said beside --resume, such as --rounds and --engine"):
            without_seal(read_text(self.config_path), self.config_path)
        return self._with_source(Settings.from_toml(self.config_path), self._whole)

    def _with_source(self, settings: Settings, change: Callable[[str], str]) -> Settings:
        if settings.source is None:
            return settings
        return settings.model_copy(update={"source": each_file(settings.source, change)})

    def _whole(self, file: str) -> str:
        return os.path.normpath(self.path.resolve() / file)

    def _seen_from_here(self, file: str) -> str:
        try:
            return os.path.join(".", os.path.relpath(file, self.path.resolve()))  # noqa: PTH118 - a Path would drop the dot
        except ValueError:
            return Path(file).name  # on another drive

    def save_data(self, data: Interactions | Domains) -> None:
        """Keep a copy, so that the run can be opened again."""
        if isinstance(data, Domains):
            data.save(self._domains_path)
            files = sorted(path for path in self._domains_path.rglob("*") if path.is_file())
        else:
            data.save(self._data_path)
            files = [self._data_path]
        seals = [asdict(sealed_file(self.path, path)) for path in files]
        write_text(self._data_seals_path, sealed_json({"files": seals}))

    def data(self) -> Interactions | Domains | None:
        """The copy of the data, if the run was started with data in memory."""
        if not self._data_seals_path.exists():
            return None
        with _remedy(_ANEW):
            told = unsealed_json(read_text(self._data_seals_path), self._data_seals_path)
            for sealed in told["files"]:
                Sealed(**sealed).check(self.path)
        return Domains.of(self._domains_path) if self._domains_path.exists() else Interactions.of(self._data_path)

    def save_checkpoint(self, checkpoint: Checkpoint, log: Extent | None = None) -> None:
        """It counts the lines of the `log` that this object wrote, unless it is said how much."""
        self._require_holder()
        write_checkpoint(self.parts, checkpoint, self.run_id, log or self.log.extent())

    def manifest(self) -> Manifest | None:
        """Of the last checkpoint, or None if the run was broken before its first."""
        with _remedy(_ANEW):
            return read_manifest(self.parts, self.run_id)

    def load_checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, or None if the run was broken before its first."""
        return self._read(lambda manifest: read_checkpoint(self.parts, manifest))

    def _read(self, read: Callable[[Manifest], T]) -> T | None:
        """Something of the last checkpoint. If a newer one took its place meanwhile, of that."""
        manifest = self.manifest()
        while manifest is not None:
            try:
                with _remedy(_ANEW):
                    return read(manifest)
            except DamagedError:
                known, manifest = manifest, self.manifest()
                if manifest == known:
                    raise
        return None

    def load_progress(self) -> Progress:
        """Only how far the run is."""
        manifest = self.manifest()
        return manifest.progress if manifest else START

    def load_best(self) -> dict[str, Tensor] | None:
        """Only what serving needs of the best round."""
        return self._read(lambda manifest: load_sealed(self.parts, manifest.best))

    def load_ranks(self) -> dict[str, Tensor]:
        """Only where the users' test items stood in the best round."""
        return self._read(lambda manifest: load_sealed(self.parts, manifest.ranks)) or {}

    def save_ranks(self, ranks: Mapping[str, Tensor]) -> None:
        """In place of those of the last checkpoint."""
        manifest = self.manifest()
        if manifest is not None:
            write_manifest(self.parts, replace(manifest, ranks=save_sealed(self.parts, "ranks", ranks)))

    def begin(self) -> None:
        """Before a run goes on: remove drafts that a kill left behind, and the summary of fewer rounds."""
        with unwritable_said(self.path):
            self._summary_path.unlink(missing_ok=True)
            self.go_on()
        for folder in (self.path, self.parts):
            sweep_drafts(folder)

    @property
    def _stop_path(self) -> Path:
        return self.path / "stop"

    def ask_to_stop(self) -> None:
        """Whoever trains, here or elsewhere, is to save the round it is in and to end; if the folder is gone, it will
        have to anyway.
        """
        with suppress(OSError):
            self._stop_path.touch()

    def go_on(self) -> None:
        """Nobody is asked to stop any more; where nothing can be written, nobody was."""
        with suppress(OSError):
            self._stop_path.unlink(missing_ok=True)

    @property
    def asked_to_stop(self) -> bool:
        return self._stop_path.exists()

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        self._require_holder()
        self.log.append(line)

    def truncate_metrics(self) -> list[dict[str, Any]]:
        """Drop the lines that the checkpoint does not count; the others."""
        manifest = self.manifest()
        with _remedy(_ANEW):
            return self.log.cut(manifest.log if manifest else NOTHING)

    def metrics(self) -> list[dict[str, Any]]:
        """A record for every round that the checkpoint counts."""
        manifest = self.manifest()
        with _remedy(_ANEW):
            return self.log.lines(manifest.log if manifest else NOTHING)

    def save_summary(self, summary: Mapping[str, Any]) -> None:
        """But for where it lies: folders may be moved."""
        told = {name: value for name, value in summary.items() if name != "run_dir"}
        write_text(self._summary_path, sealed_json({"run_id": self.run_id, **told}))

    @property
    def is_finished(self) -> bool:
        """Whether the run went to its end, and what is said of that end is whole."""
        try:
            self.summary()
        except ConfedError:
            return False
        return True

    def summary(self) -> dict[str, Any]:
        """Of the last checkpoint: one of fewer rounds says nothing about it."""
        if not self._summary_path.exists():
            raise self._not_ended()
        with _remedy(f"`confed run --resume {self.path}` writes it anew"):
            summary = unsealed_json(read_text(self._summary_path), self._summary_path)
            if summary.get("run_id") != self.run_id:
                raise DamagedError(f"{self._summary_path}: belongs to another run")
        manifest = self.manifest()
        if manifest is None:
            raise DamagedError(
                f"{self.parts / MANIFEST}: is gone; put it back, or have the run trained anew by --resume"
            )
        if summary["rounds"] != manifest.progress.round:
            raise self._not_ended()
        return summary

    def _not_ended(self) -> UnfinishedError:
        return UnfinishedError(f"{self.path}: the run has not ended; go on with `confed run --resume {self.path}`")


def _require_empty(path: Path) -> None:
    if any(found.name not in LOCK_FILES for found in path.iterdir()):
        raise ConfedError(f"{path}: already holds files; give another folder, or --resume to go on with it")


_ANEW = "put back what was there, or start the run anew in another folder"


@contextmanager
def _remedy(text: str) -> Iterator[None]:
    """Say of damage what to do about it."""
    try:
        yield
    except DamagedError as error:
        raise DamagedError(f"{error.message}; {text}") from None


def finished_below(folder: Path) -> list[RunFolder]:
    """The run folders in `folder` whose run went to its end, the newest first."""
    ended = {}
    for path in folder.glob("*/summary.json"):
        with suppress(OSError):  # its run goes on just now
            ended[path.parent] = path.stat().st_mtime
    return [RunFolder(path) for path in sorted(ended, key=ended.__getitem__, reverse=True)]


def newest(folder: Path, method: str | None = None) -> Path:
    """The finished run below `folder` that ended last, of a method or of any."""
    if RunFolder(folder).config_path.exists():
        raise ConfedError(f"{folder}: is a run itself; --latest chooses among the runs of a folder, leave it out")
    for found in finished_below(folder):
        with suppress(UnfinishedError):  # somebody goes on with it
            if method in (None, found.summary()["method"]):
                return found.path
    of = f" of {method}" if method else ""
    raise ConfedError(f"{folder}: holds no finished run{of}; `confed run --out {folder}` makes one")


def _name(settings: Settings) -> str:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    method, dataset, protocol = map(_component, (settings.method, _short(settings.dataset), settings.protocol.name))
    return f"{method}-{dataset}-{protocol}-seed{settings.seed}-{stamp}"


def _short(dataset: str) -> str:
    """Of a path its last name, of `book=shelf/a.csv,music=b.csv` the domains, of `synthetic:users=10` all of it."""
    if PAIR.match(dataset) and has_domains(dataset):
        return "-".join(domain_names(dataset))
    return Path(dataset).name.replace("=", "")


def _component(text: str) -> str:
    """Part of the name of a folder, whatever somebody calls a file: no other folder, nothing that a terminal obeys."""
    return re.sub(r"[^\w.]+|\.{2,}", "-", text)[:_LONGEST].strip("-.") or "data"


def write_text(path: Path, text: str) -> None:
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")
