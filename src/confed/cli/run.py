"""`confed run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack, get_type_hints

import typer

from confed.cli import complete
from confed.cli.finished import Data
from confed.cli.options import (
    DATASET,
    RUNS,
    Config,
    Json,
    Out,
    Seed,
    Seeds,
    Set,
    Training,
    on_the_line,
    unpacked,
)
from confed.cli.output import console, emit, loading
from confed.cli.progress import fetch, live_progress, notice
from confed.cli.tables import defaults_line, human_bytes, results
from confed.data.reading import Reading
from confed.data.shelf import require_source
from confed.errors import ConfedError, unknown_name
from confed.methods.registry import require_method
from confed.toml import parse_option, read_toml

_BESIDE_RESUME = ("rounds", "engine", "workers", "address", "data")


@unpacked
def run(
    method: Annotated[str | None, typer.Argument(help="See `confed methods`.", autocompletion=complete.methods)] = None,
    dataset: Annotated[str | None, typer.Argument(help=DATASET, autocompletion=complete.datasets)] = None,
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
            help="Do as the run in this folder did, on its data or on another DATASET; with --no-holdout up to the "
            "round that it chose.",
            autocompletion=complete.runs,
        ),
    ] = None,
    folder: Annotated[Path | None, typer.Option("--folder", help="The run folder itself, instead of --out.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Go on with the run in this folder.", autocompletion=complete.runs),
    ] = None,
    data: Data = None,
    as_json: Json = False,
    **told: Unpack[Training],
) -> None:
    """Train a method on a dataset, evaluate it every round, and keep the run in a folder."""
    if resume is not None:
        _show(_resumed(resume, told, data), as_json)
        return
    if data is not None:
        raise ConfedError("--data is for a run whose data has changed or moved: it stands beside --resume")
    if folder is not None and seeds > 1:
        raise ConfedError("--folder holds one run: use --out with --seeds")
    said = {"method": method, "dataset": dataset, "seed": seed}
    chosen = _file_then_line(config, {**said, **told}, options)
    if like is None:
        _require_both(chosen)
    places = {"out": out, "folder": folder, "like": like, "holdout": not no_holdout}
    _show(_trained(chosen, seeds, places), as_json)


def _resumed(folder: Path, told: Mapping[str, Any], data: str | None) -> dict[str, Any]:
    if on_the_line() - {"resume", "as_json", *_BESIDE_RESUME}:
        raise ConfedError(
            "--resume takes the run's own settings: only --rounds, --engine, --workers, --address, --data and --json "
            "may stand beside it"
        )
    with loading():
        from confed.runs import api
    with live_progress() as listener:
        return api.resume(folder, **told, data=data, listener=listener, notice=notice).summary


def _require_both(chosen: Mapping[str, Any]) -> None:
    if not (chosen.get("method") and chosen.get("dataset")):
        raise ConfedError("say what to run: `confed run METHOD DATASET`, or both in the file given by --config")


def _trained(chosen: dict[str, Any], seeds: int, places: Mapping[str, Any]) -> dict[str, Any]:
    """What can be wrong with names is found before anything slow is loaded."""
    what = {name: chosen.pop(name, None) for name in ("method", "dataset")}
    if what["method"]:
        require_method(what["method"])
    if what["dataset"]:
        require_source(what["dataset"])
        fetch(what["dataset"])
    with loading():
        from confed.runs import api
    several = _seeds(chosen.pop("seed", None), seeds, places["like"])
    with live_progress() as listener:
        return api.run_seeds(**what, seeds=several, **chosen, **places, listener=listener, notice=notice)


def _seeds(first: int | None, count: int, like: Path | None) -> Sequence[int | None]:
    """From the first one on; where nothing is said, that of the run that is done again."""
    if like is not None and first is None and count == 1:
        return [None]
    return range(first or 0, (first or 0) + count)


def _file_then_line(config: Path | None, said: Mapping[str, Any], options: list[str] | None) -> dict[str, Any]:
    """What the file says, overruled by what the command line says; --set pairs join the file's [options]."""
    given = _from_file(config) if config else {}
    chosen = given | {name: value for name, value in said.items() if value is not None}
    chosen["options"] = {
        **_flat(given.get("options", {})),
        **dict(parse_option(text) for text in options or []),
    }
    return chosen


def _from_file(config: Path) -> dict[str, Any]:
    """What the command line could say, in a file."""
    given = read_toml(config)
    if "method_options" in given:
        raise ConfedError(
            f"{config} is the record of a run: go on with it by --resume, or write a file that says method, dataset, "
            f"protocol (by name) and, in a table [options], what --set would say"
        )
    kinds = _CONFIG_TYPES | get_type_hints(Reading)
    for name, kind in kinds.items():
        if not isinstance(given.get(name, kind()), kind):
            raise ConfedError(f"{config}: {name} = {given[name]!r} should be of type {kind.__name__}")
    known = {*kinds, *Training.__annotations__}
    if unknown := set(given) - known:
        raise unknown_name(f"key in {config}:", min(unknown), known)
    return given


WORTH_SAYING = 0.01
"""The least share of test items without training that is mentioned."""

_CONFIG_TYPES: dict[str, type] = {"method": str, "dataset": str, "protocol": str, "seed": int, "options": dict}


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


def _release(promise: dict[str, Any]) -> str:
    from confed.privacy.projection import in_words

    return in_words(promise)


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
        if "release" in summary:
            console.print(f"what each domain gave the other: {_release(summary['release'])}")
        for line in _caveats(summary):
            console.print(line)
        for one in summary.get("runs", [summary]):
            console.print(f"run folder: {one['run_dir']}")

    emit(summary, as_json, render)
