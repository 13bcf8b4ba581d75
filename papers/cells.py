"""Experiments as cells: one configuration and seed, one line of the recipe's results, skipped if it is there already.

A recipe lists its cells and calls `run_cells`. A recipe that was stopped goes on with the first missing cell, from the
last checkpoint if it had begun; every finished cell is written at once, beside the recipe that made it, together with
what it was made with (`papers/provenance.py`).
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import confed
from confed.analysis.participation import participation
from confed.cli.progress import live_progress
from confed.data.recognition import in_catalogue
from confed.errors import DivergedError
from confed.evaluation.metrics import Ranks
from confed.runs.folder import RunFolder
from confed.runs.settings import Settings, has_views, resolve, settled
from papers.provenance import code_here, record
from papers.results import Results

RANKINGS = ("", "full_", "neg999_")
KEPT = ("hr@5", "ndcg@5", "hr@10", "ndcg@10", "hr@20", "ndcg@20")


@dataclass(frozen=True)
class Cell:
    """One run. `variant` names the options in results and tables; cells differ in it wherever options differ."""

    method: str
    dataset: str
    protocol: str
    seed: int
    rounds: int | None = None
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    detailed: bool = False
    """Keep every user's rank, for paired tests, and what the server noted."""
    measure: Callable[[confed.Run], Mapping[str, Any]] | None = None
    """What else to keep of the run, by name."""
    content_hash: str | None = None
    """Of a file that no catalogue knows."""
    alone: bool = False
    """In a process of its own, so that the memory it took is not that of an earlier cell."""

    @property
    def name(self) -> str:
        dataset, variant = (re.sub(r"[^\w.-]+", "-", text) for text in (self.dataset, self.variant))
        parts = (dataset, self.protocol, self.method, variant, f"seed{self.seed}")
        return "_".join(part for part in parts if part)

    @property
    def said(self) -> dict[str, Any]:
        """What `confed.run` is told beside method and dataset."""
        said = {"protocol": self.protocol, "rounds": self.rounds, "seed": self.seed, "options": dict(self.options)}
        return said | {"all_views": has_views(self.method, self.options)} | dict(self.settings)


def settings_of(cell: Cell, facts: Mapping[str, float] | None = None) -> Settings:
    """All that determines its run but for the content of the data; options that follow from it do so by its `facts`."""
    known = cell.dataset if in_catalogue(cell.dataset) else None
    return settled(resolve(cell.method, cell.dataset, known=known, **cell.said), facts)


def run_cells(cells: Iterable[Cell], path: Path) -> None:
    """Run the cells whose result `path` lacks, in order; one that fails does not keep the others from running.

    One that diverges will diverge again: that is its result.
    """
    results, code = Results(path), code_here()
    failed = []
    with live_progress() as listener:
        for cell in cells:
            if cell.name not in results:
                try:
                    if cell.alone:
                        with ProcessPoolExecutor(1, get_context("spawn")) as process:
                            process.submit(_finish, cell, results, code).result()
                    else:
                        _finish(cell, results, code, listener)
                except confed.ConfedError as error:
                    failed.append(f"{cell.name}: {error}")
    if failed:
        raise SystemExit("\n".join(["these cells failed:", *failed]))


def _finish(cell: Cell, results: Results, code: Mapping[str, Any], listener: Any = None) -> None:
    try:
        write_result(cell, results, code, listener)
    except DivergedError as error:
        _write(cell, results, code, {**_facts(cell), "diverged": str(error)})


def list_cells(cells: Iterable[Cell], path: Path) -> None:
    """Print which are done."""
    done = Results(path).read()
    for cell in cells:
        print("done   " if cell.name in done else "missing", cell.name)


def run_parts(
    program: str,
    description: str,
    parts: Mapping[str, Callable[[], list[Cell]]],
    path: Path,
    elsewhere: Collection[str] = (),
) -> None:
    """The command line of a recipe: some parts or all, some seeds or all. Cells that are `elsewhere` are not run."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description.splitlines()[0])
    parser.add_argument("--only", choices=parts, nargs="+", default=list(parts), help="some parts")
    parser.add_argument("--protocols", nargs="+", help="some protocols, likewise")
    parser.add_argument("--seeds", type=int, nargs="+", help="some seeds, so that two can run at once")
    parser.add_argument("--list", action="store_true", help="list the cells and stop")
    chosen = parser.parse_args()
    cells = [
        cell
        for part in chosen.only
        for cell in parts[part]()
        if cell.seed in (chosen.seeds or [cell.seed]) and cell.protocol in (chosen.protocols or [cell.protocol])
        if cell.name not in elsewhere
    ]
    if chosen.list:
        list_cells(cells, path)
    else:
        run_cells(cells, path)


def write_result(cell: Cell, results: Results, code: Mapping[str, Any], listener: Any = None) -> None:
    """Run the cell, or finish it if it was broken off, and keep what is worth keeping."""
    scratch = results.unfinished / cell.name
    if not scratch.exists():
        _note_of(scratch).parent.mkdir(parents=True, exist_ok=True)
        _note_of(scratch).write_text(json.dumps(dict(code)), encoding="utf-8")
    run = kept_run(cell, scratch, listener)
    result = reduced(cell, run.summary) | (details(run) if cell.detailed else {})
    _write(cell, results, code, result | dict(cell.measure(run) if cell.measure else {}))


def _write(cell: Cell, results: Results, code: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """With the settings that the run itself wrote down, before the folder of the run goes.

    A run that was broken off may have been begun by other code than the one that ended it: then both are kept.
    """
    scratch = results.unfinished / cell.name
    begun = json.loads(_note_of(scratch).read_text("utf-8")) if _note_of(scratch).exists() else {}
    made_with = record(RunFolder.open(scratch).settings(), code) | ({} if begun == code else {"begun_with": begun})
    results.add(cell.name, {**result, "provenance": made_with})
    _note_of(scratch).unlink(missing_ok=True)
    shutil.rmtree(scratch, ignore_errors=True)


def _note_of(scratch: Path) -> Path:
    """Which code began the run in this folder."""
    return scratch.with_name(f"{scratch.name}.code.json")


def _facts(cell: Cell) -> dict[str, Any]:
    names = ("method", "dataset", "protocol", "seed", "rounds", "variant")
    return {name: getattr(cell, name) for name in names} | {"options": dict(cell.options)}


def kept_run(cell: Cell, folder: Path, listener: Any = None) -> confed.Run:
    """The run in `folder`: finished if it was broken off, started if it is not there or had other settings."""
    with live_progress() if listener is None else nullcontext(listener) as heard:
        if (folder / "config.toml").exists():
            begun = RunFolder.open(folder).settings().model_copy(update={"content_hash": None, "source": None})
            if _written(begun) == _written(settings_of(cell, begun.facts)):
                return confed.resume(folder, listener=heard)
            shutil.rmtree(folder)
        return confed.run(cell.method, cell.dataset, folder=folder, listener=heard, **cell.said)


def _written(settings: Settings) -> dict[str, Any]:
    """As a file says them: without options that are not set."""
    return tomllib.loads(settings.to_toml())


def reduced(cell: Cell, summary: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth committing of a summary."""
    facts = ("method", "dataset", "seed", "rounds", "best_round", "view")
    costs = ("seconds_per_round", "peak_rss_mb", "participations", "upload_bytes", "download_bytes")
    return {
        **{name: summary[name] for name in facts},
        "protocol": cell.protocol,
        "variant": cell.variant,
        "options": dict(cell.options),
        **_metrics(summary),
        "validation": _metrics(summary["validation"]),
        "views": {view: _with_domains(values) for view, values in summary["views"].items()},
        **{name: summary[name] for name in costs},
        **_domains(summary),
    }


def details(run: confed.Run) -> dict[str, Any]:
    """Of every view: all users' ranks, the round its own validation metric chooses, its whole course; group sizes.

    Of several domains, both for each of them: a company would choose its own round.
    """
    views = run.summary["views"]
    if run.domains:
        return {
            "ranks": {view: {name: packed(run.ranks(view, name)) for name in run.domains} for view in views},
            "own_round": {view: {name: own_round(run, view, name) for name in run.domains} for view in views},
        }
    found: dict[str, Any] = {
        "ranks": {view: packed(run.ranks(view)) for view in views},
        "own_round": {view: own_round(run, view) for view in views},
        "curve": {view: curve(run, view) for view in views},
    }
    history = run.lines
    if "members" in history[0].get("server", {}):
        seen = participation(history, run.summary["users"])
        found["rounds_in_group"] = seen.rounds_in.tolist()
        found["group_sizes"] = seen.members.tolist()
    return found


def own_round(run: confed.Run, view: str, domain: str | None = None) -> dict[str, float]:
    """The test metrics of the round that the view's (and the domain's) own validation metric chooses."""
    protocol = run.settings.protocol
    latest = protocol.select_ties == "latest"

    def values(line: Mapping[str, Any], part: str) -> Mapping[str, float]:
        found = line["views"][view][part]
        return found if domain is None else found["domains"][domain]

    def key(line: Mapping[str, Any]) -> tuple[float, int]:
        return values(line, protocol.select_on)[protocol.select_metric], line["round"] * (1 if latest else -1)

    chosen = max((line for line in run.lines if line["views"]), key=key)
    return {"round": chosen["round"], **_metrics(values(chosen, "test"))}


def curve(run: confed.Run, view: str) -> dict[str, list[float]]:
    """HR@10 and NDCG@10 on test data, round by round."""
    lines = [line for line in run.lines if line["views"]]
    metrics = {name: [round(line["views"][view]["test"][name], 2) for line in lines] for name in ("hr@10", "ndcg@10")}
    return {"round": [line["round"] for line in lines], **metrics}


def packed(ranks: Ranks) -> dict[str, str]:
    """Two bytes a user, as text. An item that was never ranked lost to everybody."""
    above = np.where(ranks.above < 0, 255, ranks.above)
    return {
        name: base64.b64encode(np.clip(values, 0, 255).astype(np.uint8).tobytes()).decode()
        for name, values in (("above", above), ("equal", ranks.equal))
    }


def unpacked(ranks: Mapping[str, str]) -> Ranks:
    above, equal = (
        np.frombuffer(base64.b64decode(ranks[name]), dtype=np.uint8).astype(np.int64) for name in ("above", "equal")
    )
    return Ranks(above, equal)


def _metrics(values: Mapping[str, Any]) -> dict[str, float]:
    names = (f"{ranking}{base}" for base in KEPT for ranking in RANKINGS)
    return {name: round(values[name], 4) for name in names if name in values}


def _domains(values: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of every domain, where there are several."""
    return {"domains": {name: _metrics(of) for name, of in values["domains"].items()}} if "domains" in values else {}


def _with_domains(values: Mapping[str, Any]) -> dict[str, Any]:
    return _metrics(values) | _domains(values)


def load_results(path: Path, *, diverged: bool = False) -> list[dict[str, Any]]:
    """What the finished cells gave; or, asked for `diverged`, the cells that gave nothing."""
    return [result for result in Results(path).read().values() if ("diverged" in result) == diverged]


def pooled(results: Iterable[Mapping[str, Any]], metric: str, view: str | None = None) -> str:
    """Mean ± standard deviation over seeds, or the value of a single one."""
    values = np.array([(result["views"][view] if view else result)[metric] for result in results])
    if not len(values):
        return "–"
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")
