"""Which finished run a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confed.cli import complete
from confed.cli.options import RUNS
from confed.data.contents import exists
from confed.errors import ConfedError

Data = Annotated[
    str | None,
    typer.Option("--data", help="Of a run whose data has changed or moved: a copy as it was.", metavar="FILE"),
]
Latest = Annotated[bool, typer.Option("--latest", help="The newest run of the folder RUN, or of `runs` if not said.")]


def finished(folder: Path | None, *, latest: bool, method: str | None = None) -> Path:
    """The run folder that was named; with `latest`, the one in it that ended last, of a method or of any."""
    from confed.runs.folder import newest

    if latest:
        return newest(folder or RUNS, method)
    if folder is None:
        raise ConfedError("say the folder of a run, or --latest for the newest")
    if exists(folder) and not complete.is_run(folder) and any(folder.glob("*/config.toml")):
        raise ConfedError(f"{folder}: not a run folder, but it holds some: name one, or take the newest with --latest")
    return folder
