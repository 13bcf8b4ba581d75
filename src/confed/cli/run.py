"""`confed run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from confed.cli import complete
from confed.cli.options import (
    DATASET,
    RUNS,
    Address,
    Checkpoint,
    Chunk,
    Config,
    DateOrder,
    Engine,
    EvalEvery,
    ItemColumn,
    Json,
    MinInteractions,
    Out,
    Patience,
    ProtocolName,
    RatingColumn,
    Rounds,
    Seed,
    Seeds,
    Set,
    TimestampColumn,
    UserColumn,
    Workers,
    reading,
)
from confed.cli.output import console, emit, loading
from confed.cli.progress import fetch, live_progress, notice
from confed.cli.tables import defaults_line, human_bytes, results
from confed.data.columns import READING
from confed.data.shelf import require_source
from confed.errors import ConfedError, unknown_name
from confed.methods.registry import require_method
from confed.toml import parse_option, read_toml


def run(
    method: Annotated[str | None, typer.Argument(help="See `confed methods`.", autocompletion=complete.methods)] = None,
    dataset: Annotated[str | None, typer.Argument(help=DATASET, autocompletion=complete.datasets)] = None,
    protocol: ProtocolName = None,
    rounds: Rounds = None,
    seed: Seed = None,
    seeds: Seeds = 1,
    options: Set = None,
    config: Config = None,
    out: Out = RUNS,
    no_holdout: Annotated[
        bool, typer.Option("--no-holdout", help="Train on all data: a model for use, of which nothing is measured.")
    ] = False,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            help="Do as the run in this folder did; with --no-holdout up to the round that it chose.",
            autocompletion=complete.runs,
        ),
    ] = None,
    folder: Annotated[Path | None, typer.Option("--folder", help="The run folder itself, instead of --out.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with the run in this folder.", autocompletion=complete.runs),
    ] = None,
    engine: Engine = None,
    workers: Workers = None,
    address: Address = None,
    chunk: Chunk = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32 or float64.")] = None,
    eval_every: EvalEvery = None,
    patience: Patience = None,
    min_interactions: MinInteractions = None,
    checkpoint_seconds: Checkpoint = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    timestamp_column: TimestampColumn = None,
    date_order: DateOrder = None,
    as_json: Json = False,
) -> None:
    """Train a method on a dataset, evaluate it every round, and keep the run in a folder."""
    said: dict[str, Any] = {"method": method, "dataset": dataset, "protocol": protocol, "rounds": rounds, "seed": seed}
    said |= {"chunk": chunk, "dtype": dtype, "eval_every": eval_every, "patience": patience}
    place: dict[str, Any] = {"engine": engine, "workers": workers, "address": address}
    said |= place | {"min_interactions": min_interactions, "checkpoint_seconds": checkpoint_seconds}
    said |= reading(user_column, item_column, rating_column, timestamp_column, date_order)
    if resume is not None:
        others = [config, options, folder, like, no_holdout or None]
        others += [value for name, value in said.items() if name not in {"rounds", *place}]
        if any(value is not None for value in others) or seeds > 1 or out != RUNS:
            raise ConfedError(
                "--resume takes the run's own settings: only --rounds, --engine, --workers, --address and --json may "
                "stand beside it"
            )
        with loading():
            from confed.runs import api
        with live_progress() as listener:
            summary = api.resume(resume, rounds=rounds, **place, listener=listener, notice=notice).summary
        _show(summary, as_json)
        return
    chosen = {"method": None, "dataset": None} | _file_then_line(config, said, options)
    if like is None and None in (chosen["method"], chosen["dataset"]):
        raise ConfedError("say what to run: `confed run METHOD DATASET`, or both in the file given by --config")
    if folder is not None and seeds > 1:
        raise ConfedError("--folder holds one run: use --out with --seeds")
    if chosen["method"]:
        require_method(chosen["method"])
    if chosen["dataset"]:
        require_source(chosen["dataset"])
        fetch(chosen["dataset"])
    with loading():
        from confed.runs import api
    with live_progress() as listener:
        places: dict[str, Any] = {"out": out, "folder": folder, "listener": listener, "notice": notice}
        places |= {"holdout": not no_holdout, "like": like}
        summary = api.run_seeds(seeds=_seeds(chosen.pop("seed", None), seeds, like), **chosen, **places)
    _show(summary, as_json)


def _seeds(first: int | None, count: int, like: Path | None) -> Sequence[int | None]:
    """From the first one on; where nothing is said, that of the run that is done again."""
    if like is not None and first is None and count == 1:
        return [None]
    return range(first or 0, (first or 0) + count)


def _file_then_line(config: Path | None, said: dict[str, Any], options: list[str] | None) -> dict[str, Any]:
    """What the file says, overruled by what the command line says; --set pairs join the file's [options]."""
    given = read_toml(config) if config else {}
    if "method_options" in given:
        raise ConfedError(
            f"{config} is the record of a run: go on with it by --resume, or write a file that says method, dataset, "
            f"protocol (by name) and, in a table [options], what --set would say"
        )
    for name, kind in _CONFIG_TYPES.items():
        if not isinstance(given.get(name, kind()), kind):
            raise ConfedError(f"{config}: {name} = {given[name]!r} should be of type {kind.__name__}")
    if unknown := set(given) - set(said) - {"options"}:
        raise unknown_name(f"key in {config}:", min(unknown), [*said, "options"])
    chosen = given | {name: value for name, value in said.items() if value is not None}
    chosen["options"] = {
        **_flat(given.get("options", {})),
        **dict(parse_option(text) for text in options or []),
    }
    return chosen


WORTH_SAYING = 0.01
"""The least share of test items without training that is mentioned."""

_CONFIG_TYPES: dict[str, type] = {"method": str, "dataset": str, "protocol": str, "seed": int, "options": dict}
_CONFIG_TYPES |= dict.fromkeys(READING, str)


def _flat(options: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Sections of [options] by dotted name, as --set spells them."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _noise(note: dict[str, Any]) -> str:
    """Of the last round."""
    from confed.privacy.accounting import in_words

    if "mean_length" not in note:
        return (
            f"deviation {note['noise_deviation']:g} on every number of a client's change, clipped to {note['clip']:g}; "
            f"{in_words(note)}"
        )
    return (
        f"deviation {note['noise_deviation']:g} on every number, rows of mean length {note['mean_length']:.3g} clipped "
        f"to {note['clip']:g} ({100 * note['clipped_share']:.0f} % of them were longer); {in_words(note)}"
    )


def _caveats(summary: dict[str, Any]) -> Iterator[str]:
    """What is worth knowing before one believes the figures."""
    from confed.runs.verdict import verdict

    if summary.get("left_out"):
        yield (
            f"{summary['left_out']:,} users were left out: it takes three items in every domain, or, with "
            f"--set population=all, in one"
        )
    shares = summary["untrained"]
    for domain, share in (shares if isinstance(shares, dict) else {"": shares}).items():
        if share >= WORTH_SAYING:
            where = f"{domain}: " if domain else ""
            yield f"{where}{100 * share:.0f} % of the test items are in nobody's training data: no method knows them"
    yield from verdict(summary)


def _show(summary: dict[str, Any], as_json: bool) -> None:
    def render() -> None:
        console.print(results([summary]))
        console.print(defaults_line(summary))
        for figure in summary["published"]:
            figures = f"{figure['hr']:.2f} / {figure['ndcg']:.2f}, {figure['ranking']} ranking"
            console.print(f"published: {figures} ({figure['source']})")
        for view, metrics in summary.get("views", {}).items():
            if view != summary["view"] and metrics:  # none where nothing was held out
                values = f"HR@10 {metrics['hr@10']:.2f}, NDCG@10 {metrics['ndcg@10']:.2f}"
                console.print(f"the same round under the {view} view: {values}")
        parts = summary.get("upload_parts", {})
        if len(parts) > 1:
            sizes = ", ".join(f"{part} {human_bytes(size)}" for part, size in parts.items())
            of = "every domain" if "domains" in summary else "a client"
            console.print(f"upload of {of} in a round: {sizes}")
        for domain, note in summary.get("noise", {}).items():
            console.print(f"noise on what {domain} sent: {_noise(note)}")
        for line in _caveats(summary):
            console.print(line)
        for one in summary.get("runs", [summary]):
            console.print(f"run folder: {one['run_dir']}")

    emit(summary, as_json, render)
