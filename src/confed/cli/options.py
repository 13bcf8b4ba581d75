"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A hyper-parameter or a protocol switch; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")]
ProtocolName = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="Of one domain strict (the default), or paper to compare with published figures; of several warm (the "
        "default) or cold.",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        help="Rounds, or epochs of a central method; by default those, and the patience, of `confed methods show`.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="The first seed; 0 by default.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds to run, from --seed on.")]
Out = Annotated[Path, typer.Option("--out", help="Where run folders are made.")]
Chunk = Annotated[int | None, typer.Option("--chunk", min=1, help="Devices trained at once; does not change results.")]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where clients are: local (this process), processes (others of this machine) or ray; does not change "
        "results.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Processes or Ray actors that hold clients; by default one for each core."),
]
Address = Annotated[
    str | None, typer.Option("--address", help="Of a running Ray, such as auto; by default one is started.")
]
EvalEvery = Annotated[int | None, typer.Option("--eval-every", min=1, help="Evaluate every so many rounds.")]
Patience = Annotated[
    int | None, typer.Option("--patience", min=1, help="Stop after so many evaluations without a gain.")
]
MinInteractions = Annotated[
    int | None, typer.Option("--min-interactions", min=1, help="Drop users with fewer interactions.")
]
Checkpoint = Annotated[
    float | None,
    typer.Option("--checkpoint-seconds", min=0, help="Seconds between checkpoints; 0: every round."),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="A TOML file: fields of the run, and a table `options` for --set.")
]
UserColumn = Annotated[
    str | None, typer.Option("--user-column", help="Of a file: its user column, by name, or by number without header.")
]
ItemColumn = Annotated[str | None, typer.Option("--item-column", help="Likewise the item column.")]
RatingColumn = Annotated[
    str | None, typer.Option("--rating-column", help="Likewise the rating column; without one, all are 1.")
]
TimestampColumn = Annotated[
    str | None, typer.Option("--timestamp-column", help="Likewise the time stamp column, if there is one.")
]
DateOrder = Annotated[
    str | None, typer.Option("--date-order", help="dmy or mdy: whether 03/04/2024 is in April or in March.")
]
RUNS = Path("runs")
"""Where the command line keeps runs unless it is told otherwise."""
DATASET = "A name from `confed data list`, a file, or files of several domains: book=a.csv,music=b.csv."


def reading(
    user_column: str | None,
    item_column: str | None,
    rating_column: str | None,
    timestamp_column: str | None,
    date_order: str | None,
) -> dict[str, str | None]:
    """How to read a file, by the names that `confed.run` and `confed.load_dataset` have for it."""
    return {
        "user": user_column,
        "item": item_column,
        "rating": rating_column,
        "timestamp": timestamp_column,
        "date_order": date_order,
    }
