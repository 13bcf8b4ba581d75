"""`confed report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confed.cli.options import Json
from confed.cli.output import console, emit, err_console
from confed.runs import api


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write; by default RUN/report.html.")] = None,
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page about a finished run: curves, costs and the pictures its method has."""
    from confed.report import write_report  # noqa: PLC0415 - figures take a second to load

    run = api.Run.open(run_dir)
    path = write_report(run, out or run_dir / "report.html", _announce)

    def render() -> None:
        console.print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)", highlight=False)

    emit({"run": str(run_dir), "report": str(path), "bytes": path.stat().st_size}, as_json, render)


def _announce(title: str) -> None:
    err_console.print(f"{title} …", style="dim", highlight=False)
