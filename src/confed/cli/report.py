"""`confed report`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from confed.cli import complete
from confed.cli.finished import Data, Latest, finished
from confed.cli.options import Json
from confed.cli.output import console, emit, err_console, loading, styled
from confed.errors import ConfedError


def report(
    run_dir: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="The folder of a finished run.", autocompletion=complete.runs)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page, or a folder that is there; by default RUN/report.html."),
    ] = None,
    latest: Latest = False,
    data: Data = None,
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
    if method and not latest:
        raise ConfedError("--method chooses among several runs: give --latest too, or leave it out")
    with loading():
        from confed.report import write_report
        from confed.runs.finished import Run
    folder = finished(run_dir, latest=latest, method=method)
    place = folder if out is None else out
    page = place / "report.html" if place.is_dir() else place
    path = write_report(Run.open(folder, data), page, _announce, samples=not no_samples)
    if show and has_screen():
        webbrowser.open(path.resolve().as_uri())

    def render() -> None:
        console.print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)", soft_wrap=True)

    emit({"run": str(folder), "report": str(path), "bytes": path.stat().st_size}, as_json, render)


def has_screen() -> bool:
    """Whether opening a browser would show it to somebody."""
    return sys.platform in ("darwin", "win32") or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _announce(title: str) -> None:
    err_console.print(styled(f"drawn: {title}", "dim"))
