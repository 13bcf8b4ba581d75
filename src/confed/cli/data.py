"""`confed data`: which datasets there are, fetching them, looking at them, importing one's own and removing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from rich.table import Table

from confed.cli.options import Json, ReadingOptions, unpacked
from confed.cli.output import console, emit
from confed.cli.progress import download_progress, get, notice
from confed.cli.tables import human_bytes
from confed.data.catalogue import DOMAINS, REGISTRY, DatasetEntry, DomainsEntry
from confed.data.shelf import domains_at_hand, find_local, imported, is_at_hand
from confed.errors import ConfedError

if TYPE_CHECKING:
    from confed.data.domains import Domains
    from confed.data.interactions import Interactions

app = typer.Typer(help="Datasets: list, get, describe, import, remove.", no_args_is_help=True)

MinInteractions = Annotated[int, typer.Option(min=1, help="Drop users with fewer interactions.")]


_COUNTS = ("users", "items", "interactions")


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """The datasets that have a name, and which of them are at hand."""
    rows = [_listed(entry) for entry in REGISTRY.values()]
    several = [_listed_domains(entry) for entry in DOMAINS.values()]
    own = [{"name": name, "path": str(path)} for name, path in imported().items()]

    def render() -> None:
        table = Table()
        for heading in ("name", *_COUNTS, "time", "at hand"):
            table.add_column(heading, justify="right" if heading in _COUNTS else "left", no_wrap=heading == "name")
        for row in rows:
            counts = [f"{row[key]:,}" for key in _COUNTS]
            table.add_row(row["name"], *counts, row["time"], "yes" if row["path"] else row["source"])
        table.add_row("synthetic", "any", "any", "any", "real", "yes")
        for row in several:
            counts = [" / ".join(f"{one[key]:,}" for one in row["domains"].values()) for key in _COUNTS]
            table.add_row(row["name"], *counts, row["time"], _at_hand(row))
        table.add_row("synthetic:domains=3", "any", "any", "any", "real", "yes")
        for one in own:
            table.add_row(one["name"], "", "", "", "", "imported")
        console.print(table)

    emit({"datasets": rows, "multi_domain": several, "imported": own, "synthetic": True}, as_json, render)


@app.command("get")
def get_dataset(
    name: Annotated[str, typer.Argument(help="A name from `confed data list`.")], as_json: Json = False
) -> None:
    """Fetch a dataset, check it, and say where it is."""
    with download_progress() as progress:
        data = get(name, progress)
    entry = DOMAINS[name] if name in DOMAINS else REGISTRY[name]
    facts = {**_facts(data), **_whereabouts(name, data), "terms": entry.terms, "citation": entry.citation}
    emit(facts, as_json, lambda: _render_facts(facts))


@app.command("describe")
@unpacked
def describe(
    dataset: Annotated[str, typer.Argument(help="A name from `confed data list`, a file, or book=a.csv,music=b.csv.")],
    *,
    min_interactions: MinInteractions = 1,
    as_json: Json = False,
    **reading: Unpack[ReadingOptions],
) -> None:
    """Count users, items and interactions of a dataset or a file; of several domains, also whom they share."""
    from confed.data.registry import load

    with download_progress() as progress:
        data = load(dataset, min_interactions=min_interactions, progress=progress, notice=notice, **reading)
    facts = _facts(data)
    emit(facts, as_json, lambda: _render_facts(facts))


@app.command("import")
@unpacked
def import_file(
    file: Annotated[
        Path | None, typer.Argument(help="CSV, TSV, JSON lines, Excel, Parquet, MovieLens, RecBole, Last.fm or Tenrec.")
    ] = None,
    *,
    domain: Annotated[
        list[str] | None,
        typer.Option("--domain", metavar="NAME=FILE", help="Instead of one FILE, one per domain; repeat it."),
    ] = None,
    name: Annotated[str, typer.Option(help="The name by which the dataset is known from now on.")],
    min_interactions: MinInteractions = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier import.")] = False,
    as_json: Json = False,
    **reading: Unpack[ReadingOptions],
) -> None:
    """Keep a file of your own, or one per domain, under a name, so that every command knows it."""
    if (file is None) == (not domain):
        raise ConfedError("give either one FILE, or --domain NAME=FILE for each of several domains")
    from confed.data.registry import domain_files, import_dataset, load

    source = file or domain_files(domain or ())
    data = load(source, name=name, min_interactions=min_interactions, notice=notice, **reading)
    path = import_dataset(data, name, overwrite=overwrite)
    facts = {**_facts(data), "path": str(path)}
    emit(facts, as_json, lambda: _render_facts(facts))


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="The name of an import, see `confed data list`.")], as_json: Json = False
) -> None:
    """Remove an import. The file it was made from stays; runs on the import cannot be served without it."""
    from confed.data.registry import remove_import

    path, size = remove_import(name)
    emit(
        {"removed": name, "path": str(path), "bytes": size},
        as_json,
        lambda: console.print(f"removed {name}: {path} ({human_bytes(size)})", soft_wrap=True),
    )


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


def _listed_domains(entry: DomainsEntry) -> dict[str, Any]:
    paths = {domain: str(path) for domain, path in domains_at_hand(entry.name).items()}
    fetched = all(one.remotes for domain, one in entry.domains.items() if domain not in paths)
    return {
        "name": entry.name,
        "title": entry.title,
        "domains": {
            domain: {**{key: getattr(one, key) for key in _COUNTS}, "path": paths.get(domain)}
            for domain, one in entry.domains.items()
        },
        "optional": {domain: paths.get(domain) for domain in entry.optional},
        "time": entry.time,
        "at_hand": is_at_hand(entry.name),
        "source": "download" if fetched else "by hand",
        "terms": entry.terms,
        "citation": entry.citation,
        "note": entry.note,
    }


def _at_hand(row: Mapping[str, Any]) -> str:
    """Which domains are missing, or which come on top of those that were counted."""
    missing = [domain for domain, one in row["domains"].items() if one["path"] is None]
    if missing:
        return f"{row['source']}: {', '.join(missing)}"
    return ", ".join(["yes", *(f"with {domain}" for domain, path in row["optional"].items() if path)])


def _facts(data: Interactions | Domains) -> dict[str, Any]:
    return {"dataset": data.name, **data.describe()}


def _whereabouts(name: str, data: Interactions | Domains) -> dict[str, Any]:
    if name in DOMAINS:
        return {"paths": {domain: str(path) for domain, path in domains_at_hand(name).items()}}
    return {"path": str(find_local(name)), "titles": sum(len(part.titles) for part in data.parts.values())}


def _render_facts(facts: Mapping[str, Any]) -> None:
    """Two columns; the figures of domains stand above in a table with a column each."""
    if "domains" in facts:
        _render_domains(facts["domains"])
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _flat(facts):
        table.add_row(name, _shown(value))
    console.print(table)


def _render_domains(domains: Mapping[str, Mapping[str, Any]]) -> None:
    table = Table()
    table.add_column("domain", no_wrap=True)
    for domain in domains:
        table.add_column(domain, justify="right")
    figures = [dict(_flat(facts)) for facts in domains.values()]
    for name in dict.fromkeys(name for own in figures for name in own):
        if name != "content hash":  # too long for a column; there is one of all domains below
            table.add_row(name, *(_shown(own.get(name, "")) for own in figures))
    console.print(table)


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is not a figure of one domain, by name."""
    for name, value in facts.items():
        if name == "known_to":
            yield from ((f"users known to {k} domain{'s' * (k > 1)}", count) for k, count in value.items())
        elif name in {"shared", "paths"}:
            yield from ((f"{name.removesuffix('s')} {key}", one) for key, one in value.items())
        elif name == "columns":
            yield from _columns(value)
        elif name != "domains":
            yield name.replace("_", " "), value


_WITHOUT = {
    "rating": "none, every interaction counts as 1",
    "timestamp": "none, the order of the rows is not trusted",
    "title": "none, items are shown by their ids",
}


def _columns(taken: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Which column is what, and what follows where there is none."""
    for role, column in taken.items():
        if role == "ignored":
            yield "ignored columns", ", ".join(column) or "none"
        else:
            yield f"{role} column", column or _WITHOUT[role]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
