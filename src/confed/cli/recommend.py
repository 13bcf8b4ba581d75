"""`confed recommend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confed.cli.options import Json
from confed.cli.output import console, emit, loading


def recommend(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    user: Annotated[str, typer.Option("--user", help="A user's id, as in the data.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many items.")] = 10,
    domain: Annotated[str | None, typer.Option("--domain", help="Of which domain, if the data has several.")] = None,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Do not leave out items the user has.")] = False,
    as_json: Json = False,
) -> None:
    """Recommend items to one user from a finished run."""
    with loading():
        from confed.runs.finished import Run
    items = Run.open(run_dir).recommend(user, k, domain=domain, filter_seen=not include_seen)
    records = [vars(item) for item in items]

    def render() -> None:
        for rank, item in enumerate(items, start=1):
            console.print(f"{rank:3d}  {item.item:>10}  {item.score:10.4f}  {item.title or ''}", highlight=False)

    of = {"domain": domain} if domain else {}
    emit({"run": str(run_dir), "user": user, **of, "items": records}, as_json, render)
