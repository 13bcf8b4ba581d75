"""`confed similar`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confed.cli import complete
from confed.cli.finished import Data, Latest, finished
from confed.cli.options import Json
from confed.cli.output import console, emit, loading
from confed.cli.recommend import items_table
from confed.errors import ConfedError


def similar(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] ITEM",
            help="The folder of a finished run, unless --latest finds it; an item's id, as in the data.",
            autocompletion=complete.runs,
        ),
    ],
    latest: Latest = False,
    data: Data = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many items.")] = 10,
    domain: Annotated[str | None, typer.Option("--domain", help="Of which domain, if the data has several.")] = None,
    as_json: Json = False,
) -> None:
    """Items that are like one to the method: the cosine of the vectors it has of them.

    confed similar runs/fedmf-ml-100k-… 50
    """
    *folders, item = words
    if len(folders) > 1 or not (folders or latest):
        raise ConfedError("say a run folder and one item: `confed similar RUN ITEM`, or `confed similar --latest ITEM`")
    with loading():
        from confed.runs.finished import Run
    folder = finished(Path(folders[0]) if folders else None, latest=latest)
    items = Run.open(folder, data).similar(item, k, domain=domain)
    facts = {"run": str(folder), "item": item, "items": [vars(one) for one in items]}
    emit(facts, as_json, lambda: console.print(items_table(items, f"like {item}")))
