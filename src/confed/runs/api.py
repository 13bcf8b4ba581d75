"""The Python API: run a method, go on with a run, compare several."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from confed.data.catalogue import Time
from confed.data.contents import own_path
from confed.data.dates import DateOrder
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.reading import READING, Reading
from confed.data.recognition import identified
from confed.data.registry import each_file, has_domains, load, whereabouts
from confed.data.sources import Notice, announce
from confed.errors import ConfedError, StoppedError, UnwritableError
from confed.files import keep_folder, temporary_folder
from confed.methods.registry import method_named
from confed.protocol import EVERYTHING, Protocol, protocol_named
from confed.runs.checkpoint import Progress
from confed.runs.commits import gather
from confed.runs.execute import execute
from confed.runs.finished import Run
from confed.runs.folder import RunFolder
from confed.runs.loop import Listener, is_over
from confed.runs.memory import reset_peak
from confed.runs.pooling import pool
from confed.runs.prepare import ACTS_ALWAYS, Experiment, moved
from confed.runs.settings import Settings, followed, has_devices, has_views, placed, resolve, unknown_option, validated

DEFAULT_METHOD = "fedmf"
"""Of the methods across devices the one with the best figures under `strict` that takes seconds (README)."""
IN_MEMORY = "data"
"""What data is called that has no name of its own."""


def run(
    method: str | None = None,
    dataset: Any = None,
    *,
    like: Run | str | Path | None = None,
    protocol: str | None = None,
    holdout: bool = True,
    rounds: int | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    title: str | None = None,
    date_order: DateOrder | None = None,
    format: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    time: Time | None = None,
    out: str | Path | None = None,
    folder: str | Path | None = None,
    listener: Listener | None = None,
    notice: Notice | None = None,
    **settings: Any,
) -> Run:
    """Train `method` on `dataset` (a registry name, a path, a data frame, `Interactions`, or one of these for each of
    several domains) and evaluate it. With `holdout=False` all of a user's data is trained on, and nothing is measured.

    `like` is another run, or its folder: whatever is not said is as it was there; without holdout, up to the round that
    was chosen there. With a `dataset` beside it, what followed from the old data follows from the new. `options` are
    hyper-parameters of the method and switches of the protocol; `settings` are fields of `Settings` such as `chunk`,
    `patience` or `eval_every`.

    `user`, `item`, `rating`, `timestamp` and `title` name the columns of a file or a frame where the usual names do not
    find them; `date_order` says whether 03/04/2024 is a day of April (dmy) or of March (mdy); `format` to `encoding`
    say what a file is like, and `time="order"` that its rows are in chronological order.

    The run is kept in `folder`, or in a fresh folder below `out`; if neither is said, as long as it is in use
    (`Run.save`). What is worth knowing about the data goes to `notice`, or else to standard error.
    """
    columns = _said(user=user, item=item, rating=rating, timestamp=timestamp, title=title, date_order=date_order)
    file = _said(format=format, separator=separator, header=header, encoding=encoding, time=time)
    said = {"method": method, "dataset": dataset, "protocol": protocol, "rounds": rounds, "seed": seed}
    told = _said(**said) | settings | {"options": dict(options or {}), "reading": columns | file}
    if like is not None:
        told = _completed(told, as_in(like, holdout=holdout, anew="dataset" in told))
    if "method" not in told or "dataset" not in told:
        raise ConfedError("say what to run: a method and a dataset, or another run (--like) to do as it did")
    experiment, data = prepared(**told, holdout=holdout, notice=notice)
    return started(experiment, data, out=out, folder=folder, listener=listener)


def started(
    experiment: Experiment,
    data: Interactions | Domains,
    *,
    out: str | Path | None = None,
    folder: str | Path | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run what was prepared. In a folder that nobody asked for it is kept as long as the run is in use, or until it was
    stopped and somebody goes on with it.
    """
    temporary = temporary_folder() if folder is None and out is None else None
    kept = RunFolder.create(experiment.settings, Path(folder or out or temporary or ""), exact=folder is not None)
    try:
        with kept.held():
            if experiment.settings.dataset == IN_MEMORY:
                kept.save_data(data)
            execute(experiment, kept, listener)
    except (StoppedError, UnwritableError):
        if temporary:
            keep_folder(temporary)
        raise
    except BaseException:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    run = Run(kept, experiment)
    if temporary:
        weakref.finalize(run, shutil.rmtree, temporary, ignore_errors=True)
    return run


def prepared(
    method: str,
    dataset: Any,
    *,
    reading: Reading,
    holdout: bool,
    notice: Notice | None,
    protocol: str | None = None,
    **settings: Any,
) -> tuple[Experiment, Interactions | Domains]:
    """The experiment, with notices said, and the data as it was loaded."""
    if "known" in settings:
        raise ConfedError("known follows from the data, which says by its content what it is: leave it out")
    reset_peak()
    resolved = partial(
        resolve, method, _name(dataset), protocol=_protocol(dataset, protocol, holdout=holdout), **settings
    )
    _require_rounds(method, settings.get("rounds"), holdout=holdout)
    _require_choice(settings, holdout=holdout)
    resolved()  # what is wrong with the options is said before anything is loaded
    source = whereabouts(dataset)
    _require_text(source)
    data = load(dataset, notice=notice, **reading)
    chosen = resolved(known=identified(dataset, data)).model_copy(
        update={"content_hash": data.content_hash, "source": source, "reading": reading if source else {}}
    )
    experiment = Experiment.prepare(chosen, data)
    for text in experiment.notices:
        announce(text, notice)
    return experiment, data


def _completed(told: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What was said, and for the rest what another run was told."""
    if told.get("method", other["method"]) != other["method"]:
        raise ConfedError(f"--like leads to a run of {other['method']}, not of {told['method']}: leave one of them out")
    reading = told["reading"] if "dataset" in told else other["reading"]
    return {**other, **told, "options": {**other["options"], **told["options"]}, "reading": reading}


def _name(dataset: Any) -> str:
    """What a run calls its data: of files that are named by whole paths, their names."""
    if not isinstance(dataset, str | Path):
        return IN_MEMORY
    if whereabouts(dataset) is None:
        return str(dataset)
    return each_file(str(dataset), lambda file: Path(file).name if own_path(file).is_absolute() else file)


def _require_text(source: str | None) -> None:
    """A run writes down where its data is."""
    try:
        (source or "").encode()
    except UnicodeEncodeError:
        raise ConfedError(f"{source}: the path is not in UTF-8, so that no run could name it: rename it") from None


def _said(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _protocol(dataset: Any, said: str | None, *, holdout: bool) -> str:
    """The one that was said; else `strict`, which for several domains is called `warm`."""
    if not holdout:
        if said not in (None, EVERYTHING.name):
            raise ConfedError(f"--protocol {said} holds something out, --no-holdout does not: leave one of them out")
        return EVERYTHING.name
    return said or ("warm" if has_domains(dataset) else "strict")


def _require_rounds(method: str, rounds: int | None, *, holdout: bool) -> None:
    if not holdout and rounds is None and method_named(method).rounds > 1:
        raise ConfedError(
            "where nothing is held out nothing can choose the round: say --rounds, or --like RUN for the round that a "
            "run with the same settings chose"
        )


_CHOICE = ("eval_every", "eval_users", "all_views", "patience")


def _require_choice(settings: Mapping[str, Any], *, holdout: bool) -> None:
    for name in _CHOICE:
        if not holdout and settings.get(name):
            raise ConfedError(f"--{name.replace('_', '-')} does nothing where nothing is held out: leave it out")


def _choice(settings: Settings) -> dict[str, int | None]:
    """How the rounds were examined, and one of them chosen."""
    return {name: getattr(settings, name) for name in _CHOICE}


def as_in(like: Run | str | Path, *, holdout: bool, anew: bool = False) -> dict[str, Any]:
    """What to tell `run` to do the same again; without holdout up to the round that was chosen. On other data `anew`
    leaves open what followed from the data.
    """
    found = like if isinstance(like, Run) else Run.open(like)
    own, protocol = found.settings, found.settings.protocol
    base = protocol_named(protocol.name) if holdout else EVERYTHING
    acting = (set(Protocol.model_fields) if holdout else ACTS_ALWAYS) - set(own.fitted)
    switches = {name: value for name, value in protocol if name in acting and value != getattr(base, name)}
    left_open = followed(own) if anew else set()
    options = {name: value for name, value in own.method_options.items() if name not in left_open}
    memory = found.folder.data()
    return {
        "method": own.method,
        "dataset": (own.source or own.dataset) if memory is None else memory,
        "options": {**options, **switches},
        "rounds": own.rounds if holdout else int(found.summary["best_round"]),
        "seed": own.seed,
        "dtype": own.dtype,
        "reading": own.reading if memory is None else {},
        **_said(min_interactions=own.min_interactions),
        **(_said(protocol=protocol.name, **_choice(own)) if holdout else {}),
    }


def resume(
    path: str | Path,
    *,
    rounds: int | None = None,
    engine: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    data: Any = None,
    listener: Listener | None = None,
    notice: Notice | None = None,
) -> Run:
    """Go on with a run that was broken off; ends as the unbroken run would. With `rounds`, to that round: who says how
    many gets them, whatever the run's patience. It may go on at another place (`engine`) or with other `workers`.
    `data` is what it was trained on, where that is not any more where it was.
    """
    reset_peak()
    folder = RunFolder.open(Path(path))
    with folder.held():
        said = {"rounds": rounds, "engine": engine, "workers": workers, "address": address}
        return _gone_on(folder, said, data, listener, notice)


def _gone_on(
    folder: RunFolder, said: Mapping[str, Any], data: Any, listener: Listener | None, notice: Notice | None
) -> Run:
    settings = folder.settings()
    gather(folder)
    progress = folder.load_progress()
    settings = _changed(settings, progress, folder.path, **said)
    if folder.is_finished and is_over(settings, progress):
        more = f"--rounds, with more than its {progress.round}, goes on with it"
        announce(f"{folder.path}: the run is finished; {more}", notice)
        return Run(folder, data=data)
    if not progress.round and folder.log.is_begun:
        announce(f"{folder.path}: there is no checkpoint, so the run begins again with round 1", notice)
    if data is not None:
        settings = settings.model_copy(update={"source": whereabouts(data) or settings.source})
    experiment = Experiment.prepare(settings, folder.data() if data is None else moved(settings, data))
    folder.write_settings(experiment.settings)
    execute(experiment, folder, listener)
    return Run(folder, experiment)


def _changed(
    settings: Settings,
    progress: Progress,
    path: Path,
    *,
    rounds: int | None,
    engine: str | None,
    workers: int | None,
    address: str | None,
) -> Settings:
    """The settings of a run with what may be said anew when it goes on."""
    changed: dict[str, Any] = {}
    if rounds is not None:
        done, chosen = progress.round, progress.best_round
        if rounds < done:
            raise ConfedError(f"{path}: {done} rounds are done already, {rounds} are asked for")
        if rounds == done and chosen != done and (not chosen or not settings.protocol.measures):
            raise ConfedError(
                f"{path}: round {done} was not meant to be the last, and was not kept; say at least --rounds {done + 1}"
            )
        changed = {"rounds": rounds, "patience": None}
    if engine and engine != settings.engine:
        changed |= {"engine": engine, "workers": None, "address": None}
    changed |= {name: said for name, said in (("workers", workers), ("address", address)) if said}
    return placed(validated(Settings, {**settings.model_dump(), **changed}, "run"))


def run_seeds(
    method: str | None, dataset: Any, seeds: Iterable[int | None], *, notice: Notice | None = None, **arguments: Any
) -> dict[str, Any]:
    """Several seeds of one run; the summary holds `runs`, and the `mean` and `std` of every metric. Who asks to stop is
    heard between them, too.
    """
    once, found = said_once(notice), []
    for seed in seeds:
        done = run(method, dataset, seed=seed, notice=once, **arguments)
        found.append(done.summary)
        if done.stopped:
            raise StoppedError(f"stopped after seed {done.settings.seed}, whose run is finished: {done.folder.path}")
    return pool(found)


def said_once(notice: Notice | None) -> Notice:
    """Says nothing twice."""
    said = set()

    def say(text: str) -> None:
        if text not in said:
            said.add(text)
            announce(text, notice)

    return say


def compare(
    methods: Sequence[str],
    dataset: Any,
    *,
    seeds: int = 1,
    seed: int = 0,
    rounds: int | None = None,
    chunk: int | None = None,
    all_views: bool | None = None,
    engine: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    options: Mapping[str, Any] | None = None,
    notice: Notice | None = None,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """One pooled summary per method.

    `rounds` is for those that train in rounds; closed forms take one. `chunk`, `all_views` and an option go to every
    method that knows them, and must be known to one; so does the place, which is for methods with clients. `arguments`
    are those of `run`. Whatever can be wrong with methods, options and data is found before the first run.
    """
    known = {method: _known_options(method, options or {}) for method in methods}
    for name in options or {}:
        if not any(name in own for own in known.values()):
            raise unknown_option(name, methods)
    apart = [method for method in methods if method_named(method).has_clients] or methods
    place = {"engine": engine, "workers": workers, "address": address}
    chunked = [method for method in methods if has_devices(method)] or methods  # if none has any, its error says so
    viewed = [method for method in methods if has_views(method, known[method])] or methods
    own: dict[str, dict[str, Any]] = {
        method: {
            "options": known[method],
            "rounds": rounds if method_named(method).rounds > 1 else None,
            "chunk": chunk if method in chunked else None,
            "all_views": all_views if method in viewed else None,
            **(place if method in apart else {}),
        }
        for method in methods
    }
    said = {name: value for name, value in arguments.items() if name in Settings.model_fields}
    said["protocol"] = _protocol(dataset, said.get("protocol"), holdout=True)
    once = said_once(notice)
    data = load(dataset, notice=once, **_said(**{name: arguments.get(name) for name in READING}))
    said["known"] = identified(dataset, data)
    first, *others = (resolve(method, _name(dataset), seed=seed, **own[method], **said) for method in methods)
    experiment = Experiment.prepare(first, data)
    for settings in others:
        experiment.of_method(settings)
    every = range(seed, seed + seeds)
    return [run_seeds(method, dataset, every, notice=once, **own[method], **arguments) for method in methods]


def _known_options(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    known = set(method_named(method).config_class.model_fields) | set(Protocol.model_fields)
    return {name: value for name, value in options.items() if name.partition(".")[0] in known}
