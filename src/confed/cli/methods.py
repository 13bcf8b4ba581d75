"""`confed methods` and `confed methods show NAME`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from confed.cli.complete import methods as method_names
from confed.cli.options import Json
from confed.cli.output import console, emit, styled
from confed.data.catalogue import REGISTRY
from confed.methods.listing import listing
from confed.methods.published import published
from confed.methods.registry import method_named

if TYPE_CHECKING:
    from confed.methods.base import Method

app = typer.Typer(help="What can be run.", invoke_without_command=True)


@app.callback()
def list_methods(context: typer.Context, as_json: Json = False) -> None:
    """List every method; `confed methods show NAME` tells all about one."""
    if context.invoked_subcommand:
        return
    rows, problems = listing()

    def render() -> None:
        table = Table("name", "kind", "rounds", "what it is")
        for row in rows:
            table.add_row(row["name"], row["kind"], str(row["rounds"]), row["title"])
        console.print(table)
        for problem in problems:
            console.print(problem)

    emit({"methods": rows, "problems": problems}, as_json, render)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="See `confed methods`.", autocompletion=method_names)],
    as_json: Json = False,
) -> None:
    """Options with their defaults, what travels, where it deviates from the paper, published figures."""
    method = method_named(name)
    facts = describe(method)

    def render() -> None:
        console.print(styled(method.title, "bold"))
        console.print(f"{method.citation}\n")
        console.print(facts["about"])
        table = Table("option", "default", "meaning")
        for option in facts["options"]:
            table.add_row(option["name"], str(option["default"]), option["meaning"])
        console.print(table)
        for line in _lines(facts):
            console.print(line)

    emit(facts, as_json, render)


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """What a table of options leaves out."""
    for key in ("rounds", "patience", "view", "uploads", "aggregation", "discloses"):
        if facts.get(key):
            yield f"{_LABELS.get(key, key)}: {', '.join(facts[key]) if isinstance(facts[key], list) else facts[key]}"
    if facts["datasets"]:
        yield "defaults per dataset:"
    for dataset, values in facts["datasets"].items():
        yield f"  {dataset}: {', '.join(f'{option} = {value}' for option, value in values.items())}"
    if facts["published"]:
        yield "published, HR@10 / NDCG@10:"
    for dataset, figures in facts["published"].items():
        for one in figures:
            yield f"  {dataset}: {one['hr']:.2f} / {one['ndcg']:.2f}, {one['ranking']} ranking ({one['source']})"


_LABELS = {"aggregation": "what the server asks for (sum, or individual clients)"}
"""Where a fact's own name might be taken for an option's."""


def describe(method: Method) -> dict[str, Any]:
    """Everything the registry knows of a method, as plain data."""
    fields = method.config_class.model_fields
    facts: dict[str, Any] = {
        "name": method.name,
        "kind": method.kind,
        "title": method.title,
        "citation": method.citation,
        "about": "\n\n".join(method.paragraphs()),
        "rounds": method.rounds,
        "patience": method.patience,
        "options": [
            {
                "name": key,
                "default": _plain(field.get_default()),
                "meaning": " ".join((field.description or "").split()),
            }
            for key, field in fields.items()
        ],
        "discloses": method.discloses,
        "datasets": {name: dict(values) for name, values in method.defaults.items()},
        "published": {
            dataset: [vars(p) for p in published(method.name, dataset)]
            for dataset in REGISTRY
            if published(method.name, dataset)
        },
    }
    facts |= method.facts(method.config(None, {}))
    return facts


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value
