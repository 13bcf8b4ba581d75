"""The Python API: run a method, compare several, recommend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from confed.data.columns import READING
from confed.data.dates import DateOrder
from confed.data.domains import Domains
from confed.data.recognition import identified
from confed.data.registry import has_domains, load, whereabouts
from confed.errors import ConfedError
from confed.methods.registry import method_named
from confed.protocol import Protocol
from confed.runs.commits import gather
from confed.runs.execute import execute
from confed.runs.finished import Recommendation, Run
from confed.runs.folder import RunFolder
from confed.runs.loop import Listener
from confed.runs.memory import reset_peak
from confed.runs.pooling import pool
from confed.runs.prepare import Experiment
from confed.runs.settings import Settings, has_devices, placed, resolve, unknown_option, validated

DEFAULT_OUT = Path("runs")


def run(
    method: str,
    dataset: Any,
    *,
    protocol: str | None = None,
    rounds: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    date_order: DateOrder | None = None,
    out: str | Path = DEFAULT_OUT,
    folder: str | Path | None = None,
    listener: Listener | None = None,
    **settings: Any,
) -> Run:
    """Train `method` on `dataset` (a registry name, a path, a data frame, `Interactions`, or one of these for each of
    several domains) and evaluate it.

    `user`, `item`, `rating` and `timestamp` name the columns of a file or a frame where the usual names do not find
    them; `date_order` says whether 03/04/2024 is a day of April (dmy) or of March (mdy). `options` are hyper-parameters
    of the method and switches of the protocol; `settings` are fields of `Settings` such as `chunk`, `patience` or
    `eval_every`. The run is kept in `folder`, or in a fresh folder below `out`.
    """
    if "known" in settings:
        raise ConfedError("known follows from the data, which says by its content what it is: leave it out")
    reset_peak()
    name = _name(dataset)
    resolved = partial(
        resolve,
        method,
        name,
        protocol=protocol or default_protocol(dataset),
        options=options,
        rounds=rounds,
        seed=seed,
        **settings,
    )
    resolved()  # what is wrong with the options is said before anything is loaded
    reading = _said(user=user, item=item, rating=rating, timestamp=timestamp, date_order=date_order)
    data = load(dataset, **reading)
    source = whereabouts(dataset)
    chosen = resolved(known=identified(dataset, data)).model_copy(
        update={"content_hash": data.content_hash, "source": source, "reading": reading if source else {}}
    )
    experiment = Experiment.prepare(chosen, data)
    kept = RunFolder.create(chosen, Path(folder or out), exact=folder is not None)
    if name == "data":
        data.save(kept.domains_path if isinstance(data, Domains) else kept.data_path)
    execute(experiment, kept, listener)
    return Run(kept, experiment)


def _name(dataset: Any) -> str:
    """What a run calls its data; data in memory has no name."""
    return str(dataset) if isinstance(dataset, str | Path) else "data"


def _said(**options: str | None) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def default_protocol(dataset: Any) -> str:
    """`strict`, which for several domains is called `warm`."""
    return "warm" if has_domains(dataset) else "strict"


def resume(
    path: str | Path,
    *,
    rounds: int | None = None,
    engine: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    listener: Listener | None = None,
) -> Run:
    """Go on with a run that was broken off; ends as the unbroken run would. With `rounds`, to that round: who says how
    many gets them, whatever the run's patience. It may go on at another place (`engine`) or with other `workers`.
    """
    reset_peak()
    folder = RunFolder.open(Path(path))
    settings = folder.settings()
    gather(folder)
    done = folder.load_progress().round
    changed: dict[str, Any] = {}
    if rounds is not None:
        if rounds < done:
            raise ConfedError(f"{path}: {done} rounds are done already, {rounds} are asked for")
        changed = {"rounds": rounds, "patience": None}
    if engine and engine != settings.engine:
        changed |= {"engine": engine, "workers": None, "address": None}
    changed |= {name: said for name, said in (("workers", workers), ("address", address)) if said}
    settings = placed(validated(Settings, {**settings.model_dump(), **changed}, "run"))
    experiment = Experiment.prepare(settings, folder.data())
    folder.write_settings(settings)
    execute(experiment, folder, listener)
    return Run(folder, experiment)


def run_seeds(method: str, dataset: Any, seeds: Iterable[int], **arguments: Any) -> dict[str, Any]:
    """Several seeds of one run; the summary holds `runs`, and the `mean` and `std` of every metric."""
    return pool([run(method, dataset, seed=seed, **arguments).summary for seed in seeds])


def compare(
    methods: Sequence[str],
    dataset: Any,
    *,
    seeds: int = 1,
    seed: int = 0,
    rounds: int | None = None,
    chunk: int | None = None,
    engine: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """One pooled summary per method.

    `rounds` is for those that train in rounds; closed forms take one. `chunk` and an option go to every method that
    knows them, and must be known to one; so does the place, which is for methods with clients. `arguments` are those of
    `run`. Whatever can be wrong with methods, options and data is found before the first run.
    """
    known = {method: _known_options(method, options or {}) for method in methods}
    for name in options or {}:
        if not any(name in own for own in known.values()):
            raise unknown_option(name, methods)
    apart = [method for method in methods if method_named(method).has_clients] or methods
    place = {"engine": engine, "workers": workers, "address": address}
    chunked = [method for method in methods if has_devices(method)] or methods  # if none has any, its error says so
    own: dict[str, dict[str, Any]] = {
        method: {
            "options": known[method],
            "rounds": rounds if method_named(method).rounds > 1 else None,
            "chunk": chunk if method in chunked else None,
            **(place if method in apart else {}),
        }
        for method in methods
    }
    said = {name: value for name, value in arguments.items() if name in Settings.model_fields}
    said["protocol"] = said.get("protocol") or default_protocol(dataset)
    data = load(dataset, **_said(**{name: arguments.get(name) for name in READING}))
    said["known"] = identified(dataset, data)
    first, *others = (resolve(method, _name(dataset), seed=seed, **own[method], **said) for method in methods)
    experiment = Experiment.prepare(first, data)
    for settings in others:
        experiment.of_method(settings)
    every = range(seed, seed + seeds)
    return [run_seeds(method, dataset, every, **own[method], **arguments) for method in methods]


def _known_options(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    known = set(method_named(method).config_class.model_fields) | set(Protocol.model_fields)
    return {name: value for name, value in options.items() if name.partition(".")[0] in known}


class Recommender:
    """The shortest way from a data frame to recommendations.

    >>> Recommender(method="pfedrec").fit(my_dataframe).recommend("alice", k=10)
    """

    def __init__(self, method: str = "pfedrec", *, rounds: int | None = None, seed: int = 0, **options: Any) -> None:
        self.method = method
        self.rounds = rounds
        self.seed = seed
        self.options = options
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """What `fit` did."""
        if self._run is None:
            raise ConfedError("nothing is learned yet: call fit(data) first")
        return self._run

    def fit(self, data: Any, **arguments: Any) -> Recommender:
        """Train on a data frame, a file, a registry name or `Interactions`; two items a user are held out.

        `arguments` are those of `run`: `user` and `item` name the columns, if they have unusual names.
        """
        self._run = run(self.method, data, rounds=self.rounds, seed=self.seed, options=self.options, **arguments)
        return self

    def recommend(
        self, user: str | int, k: int = 10, *, domain: str | None = None, filter_seen: bool = True
    ) -> list[Recommendation]:
        return self.run.recommend(user, k, domain=domain, filter_seen=filter_seen)
