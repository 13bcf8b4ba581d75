"""The folder of a run: config.toml, metrics.jsonl, summary.json and checkpoint/, and the data if it came in memory.

Whole files are written beside their place and renamed into it, so that a kill leaves the old one or the new one. The
checkpoint is one safetensors file; its header carries the run's progress, so that tensors and progress cannot disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from confed.data.contents import exists
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.registry import domain_names, has_domains
from confed.data.shelf import PAIR
from confed.errors import ConfedError
from confed.files import written_beside
from confed.runs.settings import Settings
from confed.tensors import load_tensors, save_tensors

_STATE, _BEST, _RANKS = "state/", "best/", "ranks/"
_LONGEST = 40  # characters of four bytes at most; a name may have 255 bytes


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


class RunFolder:
    """Reads and writes one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, settings: Settings, out: Path, *, exact: bool = False) -> RunFolder:
        """A fresh folder below `out`, or `out` itself if `exact`, with its config written."""
        path = out if exact else out / _name(settings)
        try:
            if exact and path.exists() and any(path.iterdir()):
                raise ConfedError(f"{path}: already holds files; give another folder, or --resume to go on with it")
            path.mkdir(parents=True, exist_ok=exact)
        except OSError as error:
            raise ConfedError(f"{path}: cannot make a run folder there ({error.strerror})") from None
        folder = cls(path)
        folder.write_settings(settings)
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        folder = cls(path)
        if not exists(folder.config_path):
            raise ConfedError(f"{path}: not a run folder (it has no config.toml); `confed run` makes one")
        return folder

    @property
    def config_path(self) -> Path:
        return self.path / "config.toml"

    @property
    def data_path(self) -> Path:
        """A copy of data that was handed over in memory, so that the run can be opened again."""
        return self.path / "data.parquet"

    @property
    def domains_path(self) -> Path:
        """The same for data of several domains: a folder."""
        return self.path / "data"

    @property
    def _checkpoint_path(self) -> Path:
        return self.path / "checkpoint" / "latest.safetensors"

    def parts(self, number: int) -> Path:
        """Where sites elsewhere write what they hold after round `number`."""
        return self.path / "checkpoint" / f"round-{number}"

    @property
    def _metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def _summary_path(self) -> Path:
        return self.path / "summary.json"

    def write_settings(self, settings: Settings) -> None:
        write_text(self.config_path, settings.to_toml())

    def settings(self) -> Settings:
        return Settings.from_toml(self.config_path)

    def data(self) -> Interactions | Domains | None:
        """The copy of the data, if the run was started with data in memory."""
        if self.domains_path.exists():
            return Domains.of(self.domains_path)
        return Interactions.of(self.data_path) if self.data_path.exists() else None

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        write_checkpoint(self._checkpoint_path, checkpoint)

    def load_checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, or None if the run was broken before its first."""
        return read_checkpoint(self._checkpoint_path) if self._checkpoint_path.exists() else None

    def load_progress(self) -> Progress:
        """Only how far the run is."""
        return _load(self._checkpoint_path, "nothing")[1] if self._checkpoint_path.exists() else START

    def load_best(self) -> dict[str, Tensor] | None:
        """Only what serving needs of the best round."""
        return _part(_load(self._checkpoint_path, _BEST)[0], _BEST) if self._checkpoint_path.exists() else None

    def load_ranks(self) -> dict[str, Tensor]:
        """Only where the users' test items stood in the best round."""
        return _part(_load(self._checkpoint_path, _RANKS)[0], _RANKS) if self._checkpoint_path.exists() else {}

    def begin(self) -> None:
        """Before a run goes on: remove drafts that a kill left behind, and the summary of fewer rounds."""
        self._summary_path.unlink(missing_ok=True)
        self.go_on()
        for draft in self.path.rglob(".*.part"):
            draft.unlink(missing_ok=True)

    @property
    def _stop_path(self) -> Path:
        return self.path / "stop"

    def ask_to_stop(self) -> None:
        """Whoever trains, here or elsewhere, is to save the round it is in and to end."""
        self._stop_path.touch()

    def go_on(self) -> None:
        """Nobody is asked to stop any more."""
        self._stop_path.unlink(missing_ok=True)

    @property
    def asked_to_stop(self) -> bool:
        return self._stop_path.exists()

    def truncate_metrics(self, rounds: int) -> list[dict[str, Any]]:
        """Drop the lines after round `rounds`, which the checkpoint does not cover, and a torn last line."""
        kept = [line for line in self.metrics() if line["round"] <= rounds]
        write_text(self._metrics_path, "".join(json.dumps(line) + "\n" for line in kept))
        return kept

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        with self._metrics_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; a last line torn by a kill is left out."""
        if not self._metrics_path.exists():
            return []
        lines = []
        for text in self._metrics_path.read_text("utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                break
        return lines

    def save_summary(self, summary: Mapping[str, Any]) -> None:
        write_text(self._summary_path, json.dumps(summary, indent=2) + "\n")

    @property
    def has_summary(self) -> bool:
        """Whether the run went to its end."""
        return self._summary_path.exists()

    def summary(self) -> dict[str, Any]:
        if not self.has_summary:
            raise ConfedError(f"{self.path}: the run has not ended; go on with `confed run --resume {self.path}`")
        summary: dict[str, Any] = json.loads(self._summary_path.read_text("utf-8"))
        return summary


def finished_below(folder: Path) -> list[RunFolder]:
    """The run folders in `folder` whose run went to its end, the newest first."""
    ended = sorted(folder.glob("*/summary.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [RunFolder(path.parent) for path in ended]


def newest(folder: Path, method: str | None = None) -> Path:
    """The finished run below `folder` that ended last, of a method or of any."""
    if RunFolder(folder).config_path.exists():
        raise ConfedError(f"{folder}: is a run itself; --latest chooses among the runs of a folder, leave it out")
    for found in finished_below(folder):
        if method in (None, found.summary()["method"]):
            return found.path
    of = f" of {method}" if method else ""
    raise ConfedError(f"{folder}: holds no finished run{of}; `confed run --out {folder}` makes one")


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    parts = {_STATE: checkpoint.state, _BEST: checkpoint.best, _RANKS: checkpoint.ranks}
    tensors = {prefix + name: t for prefix, part in parts.items() for name, t in part.items()}
    with written_beside(path) as beside:
        save_tensors(beside, tensors, {"progress": json.dumps(asdict(checkpoint.progress))})


def read_checkpoint(path: Path) -> Checkpoint:
    tensors, progress = _load(path, "")
    return Checkpoint(progress, *(_part(tensors, prefix) for prefix in (_STATE, _BEST, _RANKS)))


def _load(path: Path, prefix: str) -> tuple[dict[str, Tensor], Progress]:
    try:
        tensors, metadata = load_tensors(path, prefix)
        return tensors, Progress(**json.loads(metadata["progress"]))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ConfedError(f"{path}: not a checkpoint of confed ({error})") from None


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


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def write_text(path: Path, text: str) -> None:
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")
