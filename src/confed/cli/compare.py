"""`confed compare`."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from confed.cli import complete
from confed.cli.options import DATASET, RUNS, Json, Out, Seed, Seeds, Set, Training, unpacked
from confed.cli.output import console, emit, loading
from confed.cli.progress import fetch, live_progress, notice
from confed.cli.tables import defaults_line, results
from confed.data.shelf import require_source
from confed.errors import ConfedError
from confed.methods.registry import require_method
from confed.toml import parse_option


@unpacked
def compare(
    methods: Annotated[list[str], typer.Argument(help="Two or more methods.", autocompletion=complete.methods)],
    dataset: Annotated[str, typer.Option("--dataset", help=DATASET, autocompletion=complete.datasets)],
    seed: Seed = None,
    seeds: Seeds = 1,
    options: Set = None,
    out: Out = RUNS,
    as_json: Json = False,
    **told: Unpack[Training],
) -> None:
    """Run several methods on one dataset and print them in one table."""
    for method in methods:
        require_method(method)
    if len(set(methods)) < 2:
        raise ConfedError(
            f"compare takes two methods or more: add one, such as ease, or `confed run {methods[0]} {dataset}`"
        )
    require_source(dataset)
    fetch(dataset)
    with loading():
        from confed.runs import api
    pairs = dict(parse_option(text) for text in options or [])
    with live_progress() as listener:
        summaries = api.compare(
            methods,
            dataset,
            seeds=seeds,
            seed=seed or 0,
            options=pairs,
            out=out,
            **told,
            listener=listener,
            notice=notice,
        )
    result = {"dataset": dataset, "protocol": summaries[0]["protocol"], "methods": summaries}

    def render() -> None:
        from confed.runs.verdict import verdict

        console.print(results(summaries))
        for summary in summaries:
            console.print(f"{summary['method']}, {defaults_line(summary)}")
        for line in (line for summary in summaries for line in verdict(summary)):
            console.print(line)

    emit(result, as_json, render)
