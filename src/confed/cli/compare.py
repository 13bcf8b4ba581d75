"""`confed compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from confed.cli.options import (
    DATASET,
    Address,
    Chunk,
    Engine,
    EvalEvery,
    Json,
    MinInteractions,
    Out,
    Patience,
    ProtocolName,
    Rounds,
    Seed,
    Seeds,
    Set,
    Workers,
)
from confed.cli.output import console, emit
from confed.cli.progress import fetch, live_progress
from confed.cli.tables import defaults_line, results
from confed.runs import api
from confed.runs.settings import parse_option
from confed.runs.verdict import verdict


def compare(
    methods: Annotated[list[str], typer.Argument(help="Two or more methods.")],
    dataset: Annotated[str, typer.Option("--dataset", help=DATASET)],
    protocol: ProtocolName = None,
    rounds: Rounds = None,
    seed: Seed = None,
    seeds: Seeds = 1,
    options: Set = None,
    out: Out = api.DEFAULT_OUT,
    engine: Engine = None,
    workers: Workers = None,
    address: Address = None,
    chunk: Chunk = None,
    eval_every: EvalEvery = None,
    patience: Patience = None,
    min_interactions: MinInteractions = None,
    as_json: Json = False,
) -> None:
    """Run several methods on one dataset and print them in one table."""
    fetch(dataset)
    with live_progress() as listener:
        summaries = api.compare(
            methods,
            dataset,
            seeds=seeds,
            seed=seed or 0,
            protocol=protocol,
            rounds=rounds,
            options=dict(parse_option(text) for text in options or []),
            out=out,
            engine=engine,
            workers=workers,
            address=address,
            chunk=chunk,
            eval_every=eval_every,
            patience=patience,
            min_interactions=min_interactions,
            listener=listener,
        )
    result = {"dataset": dataset, "protocol": summaries[0]["protocol"], "methods": summaries}

    def render() -> None:
        console.print(results(summaries))
        for summary in summaries:
            console.print(f"{summary['method']}, {defaults_line(summary)}", highlight=False)
        for line in (line for summary in summaries for line in verdict(summary)):
            console.print(line, highlight=False)

    emit(result, as_json, render)
