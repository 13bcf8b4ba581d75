"""`confed data`: which datasets there are, fetching them, looking at them, importing one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from confed.cli.options import Json
from confed.cli.output import console, emit
from confed.cli.progress import download_progress, notice
from confed.data.catalogue import REGISTRY, DatasetEntry
from confed.data.interactions import Interactions
from confed.data.registry import find_local, get_dataset, import_dataset, imported, load_dataset

app = typer.Typer(help="Datasets: list, get, describe, import.", no_args_is_help=True)

UserColumn = Annotated[str | None, typer.Option(help="Name of the user column (its number without header).")]
ItemColumn = Annotated[str | None, typer.Option(help="Name of the item column.")]
RatingColumn = Annotated[str | None, typer.Option(help="Name of the rating column; without one, all are 1.")]
TimestampColumn = Annotated[str | None, typer.Option(help="Name of the time stamp column, if there is one.")]
Separator = Annotated[str | None, typer.Option(help="What separates fields, for instance ';' or '::'.")]
Header = Annotated[bool | None, typer.Option("--header/--no-header", help="Whether line 1 names columns.")]
FormatName = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, parquet, movielens, u.data, recbole, lastfm, tenrec."),
]
TimeKind = Annotated[
    str | None,
    typer.Option("--time", help="real, order (rows are chronological) or none; found if not said."),
]
Encoding = Annotated[str, typer.Option(help="Text encoding, for instance latin-1.")]
MinInteractions = Annotated[int, typer.Option(min=1, help="Drop users with fewer interactions.")]


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """The datasets that have a name, and which of them are at hand."""
    rows = [_listed(entry) for entry in REGISTRY.values()]
    own = [{"name": name, "path": str(path)} for name, path in imported().items()]

    def render() -> None:
        table = Table()
        for heading in ("name", "users", "items", "interactions", "time", "at hand"):
            number = heading in {"users", "items", "interactions"}
            table.add_column(heading, justify="right" if number else "left")
        for row in rows:
            counts = [f"{row[key]:,}" for key in ("users", "items", "interactions")]
            table.add_row(row["name"], *counts, row["time"], "yes" if row["path"] else row["source"])
        table.add_row("synthetic", "any", "any", "any", "real", "yes")
        for one in own:
            table.add_row(one["name"], "", "", "", "", "imported")
        console.print(table)

    emit({"datasets": rows, "imported": own, "synthetic": True}, as_json, render)


@app.command("get")
def get(name: Annotated[str, typer.Argument(help="A name from `confed data list`.")], as_json: Json = False) -> None:
    """Fetch a dataset, check it, and say where it is."""
    with download_progress() as progress:
        data = get_dataset(name, progress, notice)
    entry = REGISTRY[name]
    facts = {
        **_facts(data),
        "path": str(find_local(name)),
        "titles": len(data.titles),
        "terms": entry.terms,
        "citation": entry.citation,
    }
    emit(facts, as_json, lambda: _render_facts(facts))


@app.command("describe")
def describe(
    dataset: Annotated[str, typer.Argument(help="A name from `confed data list`, or a file.")],
    *,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    timestamp_column: TimestampColumn = None,
    separator: Separator = None,
    header: Header = None,
    format_name: FormatName = None,
    time_kind: TimeKind = None,
    encoding: Encoding = "utf-8",
    min_interactions: MinInteractions = 1,
    as_json: Json = False,
) -> None:
    """Count users, items and interactions of a dataset or a file."""
    columns = _columns(user_column, item_column, rating_column, timestamp_column)
    options = _given({**columns, **_reading(separator, header, format_name, time_kind, encoding)})
    with download_progress() as progress:
        data = load_dataset(dataset, min_interactions=min_interactions, progress=progress, notice=notice, **options)
    facts = _facts(data)
    emit(facts, as_json, lambda: _render_facts(facts))


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, MovieLens, RecBole, Last.fm or Tenrec.")],
    *,
    name: Annotated[str, typer.Option(help="The name by which the dataset is known from now on.")],
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    timestamp_column: TimestampColumn = None,
    separator: Separator = None,
    header: Header = None,
    format_name: FormatName = None,
    time_kind: TimeKind = None,
    encoding: Encoding = "utf-8",
    min_interactions: MinInteractions = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier import.")] = False,
    as_json: Json = False,
) -> None:
    """Keep a file of your own under a name, so that every command knows it."""
    columns = _columns(user_column, item_column, rating_column, timestamp_column)
    options = _given({**columns, **_reading(separator, header, format_name, time_kind, encoding)})
    data = Interactions.of(file, name=name, **options).keep_users(min_interactions)
    path = import_dataset(data, name, overwrite=overwrite)
    facts = {**_facts(data), "path": str(path)}
    emit(facts, as_json, lambda: _render_facts(facts))


def _columns(user: str | None, item: str | None, rating: str | None, timestamp: str | None) -> dict[str, Any]:
    return {"user": user, "item": item, "rating": rating, "timestamp": timestamp}


def _reading(
    separator: str | None, header: bool | None, format_name: str | None, time_kind: str | None, encoding: str
) -> dict[str, Any]:
    unescaped = "\t" if separator == "\\t" else separator  # a tab is hard to type in a shell
    known = encoding if encoding != "utf-8" else None
    return {
        "separator": unescaped,
        "header": header,
        "format": format_name,
        "time": time_kind,
        "encoding": known,
    }


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _listed(entry: DatasetEntry) -> dict[str, Any]:
    path = find_local(entry.name)
    return {
        "name": entry.name,
        "title": entry.title,
        "users": entry.users,
        "items": entry.items,
        "interactions": entry.interactions,
        "time": entry.time,
        "path": str(path) if path else None,
        "source": "download" if entry.remotes else "by hand",
        "terms": entry.terms,
        "citation": entry.citation,
        "note": entry.note,
    }


def _facts(data: Interactions) -> dict[str, Any]:
    return {"dataset": data.name, **data.describe()}


def _render_facts(facts: Mapping[str, Any]) -> None:
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
