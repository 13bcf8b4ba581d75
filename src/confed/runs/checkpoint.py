"""A checkpoint: files of tensors, and a manifest that says which, what is in them, and whose they are.

The manifest is written last, in one step: before it the old checkpoint counts, from then on the new one. Files are
named by their content, so that a new checkpoint never writes over an old one; what no manifest names is swept away.
Where clients are elsewhere their sites write their own parts, and the manifest names those too (`Checkpoint.sites`).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torch import Tensor

from confed.errors import DamagedError
from confed.files import unwritable_said, written_beside
from confed.runs.log import Extent
from confed.seals import Sealed, read_text, sealed_json, unsealed_json
from confed.tensors import load_sealed, save_sealed

MANIFEST = "manifest.json"
FORMAT = 2
"""Of the manifest; a later confed that changes it counts on."""


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    round: int
    best_round: int
    best_value: float
    evaluations_without_gain: int


START = Progress(0, 0, float("-inf"), 0)


@dataclass(frozen=True)
class Checkpoint:
    progress: Progress
    state: dict[str, Tensor]
    best: dict[str, Tensor]
    """What serving needs of the best round so far."""
    ranks: dict[str, Tensor] = field(default_factory=dict)
    """By view and count, for every user: where the test item stood in the best round (`Ranks`, sampled)."""
    sites: tuple[Sealed, ...] = ()
    """What sites elsewhere hold, one file each: state and best of their clients."""


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint consists of."""

    run: str
    """The run's id (`Settings.run_id`): parts of another run do not fit."""
    progress: Progress
    log: Extent
    state: Sealed
    best: Sealed
    ranks: Sealed
    sites: tuple[Sealed, ...] = ()

    @property
    def files(self) -> tuple[Sealed, ...]:
        return (self.state, self.best, self.ranks, *self.sites)

    def to_json(self) -> str:
        return sealed_json({"format": FORMAT, **asdict(self), "sites": [asdict(site) for site in self.sites]})

    @classmethod
    def from_json(cls, text: str, path: Path) -> Manifest:
        told = unsealed_json(text, path)
        if told.pop("format", None) != FORMAT:
            raise DamagedError(f"{path}: of another version of confed, which this one cannot read")
        state, best, ranks = (Sealed(**told[name]) for name in ("state", "best", "ranks"))
        sites = tuple(Sealed(**site) for site in told["sites"])
        return cls(told["run"], Progress(**told["progress"]), Extent(**told["log"]), state, best, ranks, sites)


def write_checkpoint(folder: Path, checkpoint: Checkpoint, run: str, log: Extent) -> None:
    """Its files, then the manifest; then whatever else is in the folder goes."""
    state, best, ranks = (save_sealed(folder, name, getattr(checkpoint, name)) for name in ("state", "best", "ranks"))
    write_manifest(folder, Manifest(run, checkpoint.progress, log, state, best, ranks, checkpoint.sites))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """From now on it counts; files that it does not name go."""
    with written_beside(folder / MANIFEST) as beside:
        beside.write_text(manifest.to_json(), encoding="utf-8")
    with unwritable_said(folder):
        sweep(folder, [MANIFEST, *(file.name for file in manifest.files)])


def read_manifest(folder: Path, run: str) -> Manifest | None:
    """None before the first checkpoint."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    manifest = Manifest.from_json(read_text(path), path)
    if manifest.run != run:
        raise DamagedError(
            f"{path}: belongs to another run, one with other data or settings than config.toml has: its id is "
            f"{manifest.run[:12]}…, that of the settings {run[:12]}…"
        )
    return manifest


def read_checkpoint(folder: Path, manifest: Manifest) -> Checkpoint:
    state, best, ranks = (load_sealed(folder, part) for part in (manifest.state, manifest.best, manifest.ranks))
    return Checkpoint(manifest.progress, state, best, ranks, manifest.sites)


def sweep(folder: Path, kept: Collection[str]) -> None:
    """Remove what no manifest names: parts of older checkpoints, and of one that a kill cut short."""
    for path in folder.iterdir():
        if path.name not in kept:
            with suppress(OSError):  # somebody still reads it: next time
                path.unlink()
