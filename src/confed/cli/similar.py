"""`confed similar`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confed.cli import complete
from confed.cli.options import Json
from confed.cli.output import console, emit, loading
from confed.cli.recommend import items_table


def similar(
    run_dir: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a finished run.", autocompletion=complete.runs)
    ],
    item: Annotated[str, typer.Argument(help="An item's id, as in the data.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many items.")] = 10,
    domain: Annotated[str | None, typer.Option("--domain", help="Of which domain, if the data has several.")] = None,
    as_json: Json = False,
) -> None:
    """Items that are like one to the method: the cosine of the vectors it has of them.

    confed similar runs/fedmf-ml-100k-… 50
    """
    with loading():
        from confed.runs.finished import Run
    items = Run.open(run_dir).similar(item, k, domain=domain)
    facts = {"run": str(run_dir), "item": item, "items": [vars(one) for one in items]}
    emit(facts, as_json, lambda: console.print(items_table(items, f"like {item}")))
