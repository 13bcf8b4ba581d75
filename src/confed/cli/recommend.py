"""`confed recommend`: from a finished run, or straight from a file, on which a method is trained first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.table import Table

from confed.cli import complete
from confed.cli.finished import Data, Latest, finished
from confed.cli.options import RUNS, Json, ReadingOptions, unpacked
from confed.cli.output import Words, bars, console, emit, loading
from confed.cli.progress import fetch, live_progress, notice
from confed.data.contents import exists
from confed.data.shelf import require_source
from confed.errors import ConfedError
from confed.methods.registry import require_method
from confed.visible import shown

if TYPE_CHECKING:
    from confed.runs.finished import Run
    from confed.runs.offers import Recommendation

_FORMATS = (".csv", ".parquet", ".jsonl")


@unpacked
def recommend(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|DATASET",
            help="The folder of a finished run; or a file or dataset, on which a method is trained first.",
            autocompletion=complete.runs_and_datasets,
        ),
    ] = None,
    users: Annotated[
        list[str] | None, typer.Option("--user", help="A user's id, as in the data; may be repeated.")
    ] = None,
    history: Annotated[
        str | None, typer.Option("--history", help="Instead of a user: items of somebody new, as 12,345,67.")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Every user of the data; say with --out where to.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="With --all: the file, .csv, .parquet or .jsonl.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many items.")] = 10,
    latest: Latest = False,
    data: Data = None,
    method: Annotated[
        str | None,
        typer.Option("--method", help="Trained on a DATASET; fedmf if not said.", autocompletion=complete.methods),
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Where runs on a DATASET are kept, and looked for.")] = RUNS,
    domain: Annotated[str | None, typer.Option("--domain", help="Of which domain, if the data has several.")] = None,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Do not leave out items the user has.")] = False,
    as_json: Json = False,
    **reading: Unpack[ReadingOptions],
) -> None:
    """Recommend items to users of a finished run, or of a file of your own.

    confed recommend orders.csv --user K-0007
    """
    _require_one_of({"--user": users, "--history": history, "--all": everybody})
    _require_file(out, everybody=everybody)
    told = {**reading, **({"method": method} if method else {})}
    run = _run(target, runs, told, users or (), latest=latest, data=data)
    asked: dict[str, Any] = {"domain": domain, "filter_seen": not include_seen}
    about = {"run": str(run.folder.path), **({"domain": domain} if domain else {})}
    if out is not None:
        _write_all(run, k, out, asked, about, as_json)
        return
    if history is not None:
        offered = {"": run.recommend(history=[item.strip() for item in history.split(",")], k=k, **asked)}
        about["history"] = history
    else:
        offered = {one: run.recommend(one, k, **asked) for one in users or ()}
    emit(about | _as_data(offered), as_json, lambda: _render(offered))


def _require_one_of(said: Mapping[str, Any]) -> None:
    given = [name for name, value in said.items() if value]
    if len(given) != 1:
        raise ConfedError(
            f"say for whom: one of --user (once or more), --history and --all, not {' and '.join(given) or 'none'}"
        )


def _require_file(to: Path | None, *, everybody: bool) -> None:
    if everybody != (to is not None):
        raise ConfedError("--all and --out belong together: --all --out recommendations.csv")
    if to is None:
        return
    if to.suffix not in _FORMATS:
        raise ConfedError(f"--out {to}: the file's name should end in {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")
    if not to.absolute().parent.is_dir():
        raise ConfedError(f"--out {to}: there is no folder {to.absolute().parent}")


def _run(
    target: str | None,
    runs: Path,
    told: Mapping[str, Any],
    users: Sequence[str],
    *,
    latest: bool,
    data: str | None,
) -> Run:
    """A finished run; of data, the one that was trained on it before, or else a fresh one."""
    if target is None and not latest:
        raise ConfedError("say a run folder or a dataset: `confed recommend orders.csv --user K-0007`; or --latest")
    folder = Path(target or runs)
    is_run = complete.is_run(folder)
    if told and (is_run or latest):
        raise ConfedError("--method, and what says how to read a file, are for a dataset: a run has its own")
    if data and not (is_run or latest):
        raise ConfedError("--data is for a run whose data has changed: give the run's folder, or leave it out")
    if not (is_run or latest):
        _require_data(str(target), told.get("method"))
    with loading():
        from confed.runs.finished import Run
    if is_run or latest:
        return Run.open(finished(folder, latest=latest), data)
    return _trained(str(target), runs, told, users)


def _require_data(target: str, method: str | None) -> None:
    """What can be wrong is found before anything slow is loaded."""
    if method:
        require_method(method)
    if exists(Path(target)) and Path(target).is_dir() and not (Path(target) / "domains.json").exists():
        raise ConfedError(f"{target}: neither a run folder nor data; if it holds run folders, say --latest")
    require_source(target)


def _trained(dataset: str, runs: Path, told: Mapping[str, Any], users: Sequence[str]) -> Run:
    from confed.runs.trained import trained
    from confed.runs.verdict import verdict

    fetch(dataset)
    with live_progress() as listener:
        run, fresh = trained(dataset, out=runs, users=users, listener=listener, notice=notice, **told)
    how = "trained" if fresh else "trained before"
    notice(f"{how}: {run.summary['method']} on {dataset} ({run.folder.path}){_quality(run.summary)}")
    for line in verdict(run.summary):
        notice(line)
    return run


def _quality(summary: Mapping[str, Any]) -> str:
    """How good it is, beside what needs no learning."""
    if "hr@10" not in summary:
        return ""
    popular = summary.get("popularity")
    beside = f", popularity {popular['hr@10']:.1f} / {popular['ndcg@10']:.1f}" if popular else ""
    ranked = f"HR@10 / NDCG@10 against {summary['negatives']} candidates"
    return f": {ranked} {summary['hr@10']:.1f} / {summary['ndcg@10']:.1f}{beside}"


def _write_all(run: Run, k: int, to: Path, asked: Mapping[str, Any], about: Mapping[str, Any], as_json: bool) -> None:
    from confed.files import written_beside

    columns = (Words("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with bars(*columns, transient=True) as drawn:
        task = drawn.add_task("recommending", total=None)
        offers = run.offers(k=k, **asked)
        everybody = offers.to_everybody(lambda done, of: drawn.update(task, completed=done, total=of))
    for text in everybody.notes:
        notice(text)
    frame = everybody.frame
    write: Mapping[str, Callable[[Path], Any]] = {
        ".csv": frame.write_csv,
        ".parquet": frame.write_parquet,
        ".jsonl": frame.write_ndjson,
    }
    with written_beside(to) as beside:
        write[to.suffix](beside)
    users = frame["user"].n_unique()
    said = f"{to}: {frame.height:,} rows, {users:,} users"
    facts = {"users": users, "newcomers": everybody.newcomers, "left_out": everybody.left_out, "rows": frame.height}
    emit({**about, "file": str(to), **facts}, as_json, lambda: console.print(said))


def _as_data(offered: Mapping[str, Sequence[Recommendation]]) -> dict[str, Any]:
    """Of one user as it always was, of several a list."""
    lists = [
        {**({"user": user} if user else {}), "items": [vars(one) for one in items]} for user, items in offered.items()
    ]
    return lists[0] if len(lists) == 1 else {"users": lists}


def _render(offered: Mapping[str, Sequence[Recommendation]]) -> None:
    for user, items in offered.items():
        console.print(items_table(items, f"for {user}" if user else None))


def items_table(items: Sequence[Recommendation], title: str | None = None) -> Table:
    """Rank, title and score."""
    table = Table(title=shown(title) if title else None)
    titled = any(one.title for one in items)
    table.add_column("rank", justify="right")
    for heading in ("title", "item") if titled else ("item",):
        table.add_column(heading, overflow="fold")
    table.add_column("score", justify="right")
    for rank, one in enumerate(items, start=1):
        names = (one.title or "", one.item) if titled else (one.item,)
        table.add_row(str(rank), *map(shown, names), f"{one.score:.4f}")
    if items and not titled:
        notice("the data has no titles: items are shown by their ids")
    return table
