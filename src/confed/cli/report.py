"""`confed report`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from confed.cli.options import Json
from confed.cli.output import console, emit, err_console
from confed.errors import ConfedError
from confed.runs.finished import Run
from confed.runs.folder import RunFolder


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page, or a folder that is there; by default RUN/report.html."),
    ] = None,
    latest: Annotated[bool, typer.Option("--latest", help="RUN holds run folders: take the newest one.")] = False,
    method: Annotated[
        str | None, typer.Option("--method", help="With --latest: the newest one of this method.")
    ] = None,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Leave out what a few users had and what is recommended to them.")
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser, where there is a screen.")] = False,
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page about a finished run: curves, costs and the pictures its method has."""
    from confed.report import write_report  # noqa: PLC0415 - figures take a second to load

    if method and not latest:
        raise ConfedError("--method chooses among several runs: give --latest too, or leave it out")
    folder = newest(run_dir, method) if latest else only(run_dir)
    place = folder if out is None else out
    page = place / "report.html" if place.is_dir() else place
    path = write_report(Run.open(folder), page, _announce, samples=not no_samples)
    if show and has_screen():
        webbrowser.open(path.resolve().as_uri())

    def render() -> None:
        console.print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)", highlight=False, soft_wrap=True)

    emit({"run": str(folder), "report": str(path), "bytes": path.stat().st_size}, as_json, render)


def only(folder: Path) -> Path:
    """`folder` itself, unless it holds runs and is none."""
    if not RunFolder(folder).config_path.exists() and any(folder.glob("*/config.toml")):
        raise ConfedError(f"{folder}: not a run folder, but it holds some: name one, or take the newest with --latest")
    return folder


def newest(folder: Path, method: str | None) -> Path:
    """The finished run below `folder` that ended last."""
    if RunFolder(folder).config_path.exists():
        raise ConfedError(f"{folder}: is a run itself; --latest chooses among the runs of a folder, leave it out")
    ended = [
        path for path in folder.glob("*/summary.json") if method in (None, RunFolder(path.parent).summary()["method"])
    ]
    if not ended:
        of = f" of {method}" if method else ""
        raise ConfedError(f"{folder}: holds no finished run{of}; `confed run --out {folder}` makes one")
    return max(ended, key=lambda path: path.stat().st_mtime).parent


def has_screen() -> bool:
    """Whether opening a browser would show it to somebody."""
    return sys.platform in ("darwin", "win32") or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _announce(title: str) -> None:
    err_console.print(f"drawn: {title}", style="dim", highlight=False)
