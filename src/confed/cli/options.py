"""Options that several commands share: one by one, and in groups that a command takes whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

import typer
from click import get_current_context
from click.core import ParameterSource

from confed.cli.output import JSON

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A hyper-parameter or a protocol switch; may be repeated."),
]
Json = Annotated[bool, typer.Option(JSON, help="Print exactly one JSON object on standard output.")]
Seed = Annotated[int | None, typer.Option("--seed", help="The first seed; 0 by default.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds to run, from --seed on.")]
Out = Annotated[Path, typer.Option("--out", help="Where run folders are made.")]
Config = Annotated[
    Path | None, typer.Option("--config", help="A TOML file: fields of the run, and a table `options` for --set.")
]
RUNS = Path("runs")
"""Where the command line keeps runs unless it is told otherwise."""
DATASET = "A name from `confed data list`, a file, or files of several domains: book=a.csv,music=b.csv."

_of_a_file = partial(typer.Option, rich_help_panel="How a file is read, where that is not clear by itself")


class ReadingOptions(TypedDict, total=False):
    """`confed.data.reading.Reading`, as the command line has it."""

    user: Annotated[str, _of_a_file("--user-column", help="By its name, or without header by its number.")]
    item: Annotated[str, _of_a_file("--item-column", help="Likewise.")]
    rating: Annotated[str, _of_a_file("--rating-column", help="Likewise; without one, all ratings are 1.")]
    timestamp: Annotated[str, _of_a_file("--timestamp-column", help="Likewise, if there is one.")]
    title: Annotated[str, _of_a_file("--title-column", help="Likewise: what people call the items.")]
    date_order: Annotated[
        str, _of_a_file("--date-order", help="dmy or mdy: whether 03/04/2024 is in April or in March.")
    ]
    format: Annotated[
        str,
        _of_a_file("--format", help="csv, tsv, jsonl, excel, parquet, movielens, u.data, recbole, lastfm or tenrec."),
    ]
    separator: Annotated[
        str,
        _of_a_file(
            "--separator",
            help="What separates fields, for instance ';' or '::'.",
            callback=lambda said: "\t" if said == "\\t" else said,  # a tab is hard to type in a shell
        ),
    ]
    header: Annotated[bool, _of_a_file("--header/--no-header", help="Whether line 1 names columns.")]
    encoding: Annotated[str, _of_a_file("--encoding", help="utf-8 if not said; for instance latin-1.")]
    time: Annotated[str, _of_a_file("--time", help="real, order (rows are chronological) or none; found if not said.")]


class Training(ReadingOptions, total=False):
    """What `confed.run` is told beside method, data and seed, by the names that it has there."""

    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="Of one domain strict (the default), or paper to compare with published figures; of several warm "
            "(the default) or cold.",
        ),
    ]
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds",
            help="Rounds, or epochs of a central method; by default those, and the patience, of `confed methods show`.",
        ),
    ]
    patience: Annotated[int, typer.Option("--patience", min=1, help="Stop after so many evaluations without a gain.")]
    eval_every: Annotated[int, typer.Option("--eval-every", min=1, help="Evaluate every so many rounds.")]
    eval_users: Annotated[
        int,
        typer.Option(
            "--eval-users", min=1, help="Rank a sample of so many users in every evaluation, everybody in the end."
        ),
    ]
    all_views: Annotated[
        bool,
        typer.Option(
            "--all-views", help="Rank under every view of the method, not only under the one that it is judged by."
        ),
    ]
    min_interactions: Annotated[
        int, typer.Option("--min-interactions", min=1, help="Drop users with fewer interactions.")
    ]
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="Where clients are: local (this process), processes (others of this machine) or ray; does not change "
            "results.",
        ),
    ]
    workers: Annotated[
        int,
        typer.Option(
            "--workers", min=1, help="Processes or Ray actors that hold clients; by default one for each core."
        ),
    ]
    address: Annotated[
        str, typer.Option("--address", help="Of a running Ray, such as auto; by default one is started.")
    ]
    chunk: Annotated[int, typer.Option("--chunk", min=1, help="Devices trained at once; does not change results.")]
    dtype: Annotated[str, typer.Option("--dtype", help="float32 or float64.")]
    checkpoint_seconds: Annotated[
        float, typer.Option("--checkpoint-seconds", min=0, help="Seconds between checkpoints; 0: every round.")
    ]


def unpacked(command: Callable[..., None]) -> Callable[..., None]:
    """Shows typer, instead of a command's `**told: Unpack[Group]`, the options of the group one by one. The command
    hears of those that were said.
    """
    signature = inspect.signature(command, eval_str=True)
    *own, told = signature.parameters.values()
    (group,) = get_args(told.annotation)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in get_type_hints(group, include_extras=True).items()
    ]

    @wraps(command)
    def called(**said: Any) -> None:
        silent = [option.name for option in options if said[option.name] is None]
        command(**{name: value for name, value in said.items() if name not in silent})

    called.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return called


def on_the_line() -> set[str]:
    """The parameters of the command that was called, by name, that its user gave."""
    context = get_current_context()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
