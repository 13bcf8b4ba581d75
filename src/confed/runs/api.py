"""The Python API: run a method, compare several, recommend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confed.data import Interactions
from confed.data.domain_split import ColdSplit, DomainSplit
from confed.data.domains import Domains
from confed.data.registry import has_domains, load, whereabouts
from confed.data.split import Split
from confed.engines.domains import SiloEngine
from confed.engines.local import LocalEngine
from confed.errors import ConfedError, unknown_name
from confed.evaluation.metrics import Ranks
from confed.evaluation.protocol import Protocol
from confed.methods.registry import method_named
from confed.ragged import Ragged
from confed.runs.folder import RunFolder
from confed.runs.memory import reset_peak
from confed.runs.runner import Experiment, Listener, execute, make_domain_trainer
from confed.runs.settings import Settings, has_devices, resolve, unknown_option, validated
from confed.silos.base import Rows

DEFAULT_OUT = Path("runs")


@dataclass(frozen=True)
class Recommendation:
    """One recommended item, by its original id."""

    item: str
    score: float
    title: str | None = None


@dataclass(frozen=True)
class Preferences:
    """The users of a domain as its company sees them: rows `mean` and, where there are distributions, `deviation`."""

    users: list[str]
    """Original ids of those the company has interactions of, in the order of the rows."""
    start: Rows
    """Before the first round."""
    chosen: Rows
    """After the chosen round."""


class Run:
    """A finished run: its summary, the metrics of every round, and recommendations from its best round."""

    def __init__(self, folder: RunFolder, experiment: Experiment | None = None) -> None:
        self.folder = folder
        self.settings = folder.settings()
        self.summary = folder.summary()
        self._experiment = experiment
        self._best: dict[str, Tensor] | None = None

    @classmethod
    def open(cls, path: str | Path) -> Run:
        return cls(RunFolder.open(Path(path)))

    @property
    def metrics(self) -> dict[str, float]:
        """The test metrics of the chosen round, in percent."""
        return {name: value for name, value in self.summary.items() if "@" in name}

    @property
    def history(self) -> list[dict[str, Any]]:
        """One record per round, as in metrics.jsonl."""
        return self.folder.metrics()

    def ranks(self, view: str | None = None, domain: str | None = None) -> Ranks:
        """Where every user's test item stood among the sampled candidates in the chosen round."""
        ranks = self.folder.load_ranks()
        name = (view or self.summary["view"]) + (f".{domain}" if domain else "")
        if f"{name}.above" not in ranks:
            raise ConfedError(f"{self.folder.path}: no ranks of the view {name!r} were kept")
        return Ranks(ranks[f"{name}.above"].numpy(), ranks[f"{name}.equal"].numpy())

    @property
    def state_round(self) -> int:
        """The round after which `best_state` stood: the one before the chosen round, where that has to be rebuilt."""
        rebuilt = self.summary["view"] == "local" and len(self.summary["views"]) > 1 and not self.domains
        return int(self.summary["best_round"]) - rebuilt

    def best_state(self) -> dict[str, Tensor]:
        """Server and client state from which the chosen round is served, by name; see `state_round`."""
        if self._best is None:
            self._best = self.folder.load_best()
        if self._best is None:
            raise ConfedError(f"{self.folder.path}: the checkpoint is missing")
        return self._best

    def client_tables(self) -> Tensor | None:
        """(clients, items, d): every client's item table in the chosen round, as it was scored under the run's view.

        Under `local` as the client trained it, else as the server's step left it. None where no table is shared.
        """
        experiment = self._prepared()
        if not isinstance(experiment.trainer, LocalEngine):
            return None
        return experiment.trainer.client_tables(self.best_state(), int(self.summary["best_round"]))

    @property
    def has_two_tables(self) -> bool:
        """Whether clients score with the sum of a shared item table and their own."""
        trainer = self._prepared().trainer
        return isinstance(trainer, LocalEngine) and trainer.pieces.backbone.views is not None

    def two_tables(self, users: Sequence[int]) -> tuple[Tensor, Tensor] | None:
        """(users, items, d) twice, in the chosen round: the shared item table as the clients numbered in `users` look
        at it, and their own. None where a method has one table only.
        """
        trainer = self._prepared().trainer
        if not isinstance(trainer, LocalEngine):
            return None
        clients = np.asarray(users, dtype=np.int64)
        return trainer.two_tables(self.best_state(), int(self.summary["best_round"]), clients)

    def two_scores(self) -> Iterator[tuple[Tensor, Tensor]] | None:
        """(users, items) twice, in the chosen round, some users after others: scores by what everybody shares, and by
        what is the client's own. None where a method has one view of an item only.
        """
        trainer = self._prepared().trainer
        if not isinstance(trainer, LocalEngine):
            return None
        return trainer.two_scores(self.best_state(), int(self.summary["best_round"]))

    def drift(self) -> Tensor | None:
        """(users,): how far a round of local training takes each client's shared tables from the consensus."""
        trainer = self._prepared().trainer
        if not isinstance(trainer, LocalEngine):
            return None
        return trainer.drift(self.best_state(), int(self.summary["best_round"]))

    def preferences(self) -> dict[str, Preferences]:
        """By domain, how its company sees its users. Empty where a method knows no distributions of users."""
        experiment = self._prepared()
        if not isinstance(experiment.trainer, SiloEngine):
            return {}
        assert isinstance(experiment.cut, DomainSplit)
        fresh = make_domain_trainer(self.settings, experiment.cut)  # where a run starts is a function of its seed
        assert isinstance(fresh, SiloEngine)
        start, chosen = fresh.user_points(), fresh.user_points(self.best_state())
        return {name: _preferences(experiment.cut.parts[name], start[name], chosen[name]) for name in chosen}

    @property
    def training_items(self) -> Ragged:
        """Of every user, the numbers of the items trained on."""
        cut, _ = self._of_domain(None)
        return cut.training.positives

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains; empty where there is one only."""
        return tuple(self.summary.get("domains", ()))

    def report(self, path: str | Path | None = None) -> Path:
        """Write a self-contained HTML page about the run, by default report.html in its folder."""
        from confed.report import write_report  # noqa: PLC0415 - figures take a second to load

        return write_report(self, Path(path or self.folder.path / "report.html"))

    def recommend(
        self, user: str | int, k: int = 10, *, domain: str | None = None, filter_seen: bool = True
    ) -> list[Recommendation]:
        """The `k` best items of one user, best first; items the user already has are left out.

        Where the data has several domains, `domain` says of which the items are.
        """
        if k < 1:
            raise ConfedError(f"k = {k}: ask for at least one item")
        cut, titles = self._of_domain(domain)
        if str(user) not in cut.user_ids:
            raise self._unknown_user(str(user), cut)
        client = cut.user_ids.index(str(user))
        of_domain = {} if domain is None else {"domain": domain}
        trainer, number = self._prepared().trainer, int(self.summary["best_round"])
        scores = trainer.serve(self.best_state(), number, np.array([client]), **of_domain)[0].double()
        if filter_seen:
            scores[torch.from_numpy(cut.seen[client])] = -torch.inf
        best = torch.topk(scores, min(k, len(scores)))
        return [
            Recommendation(cut.item_ids[item], score, titles.get(cut.item_ids[item]))
            for item, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if score > float("-inf")
        ]

    def _unknown_user(self, user: str, cut: Split | ColdSplit) -> ConfedError:
        """Somebody whom another domain knows is no slip of the pen."""
        experiment = self._prepared()
        if isinstance(experiment.cut, DomainSplit) and isinstance(experiment.data, Domains):
            elsewhere = [name for name, part in experiment.cut.parts.items() if user in part.user_ids]
            if elsewhere:
                there = ", ".join(elsewhere)
                return ConfedError(f"user {user!r} is known to {there} only: ask for --domain {elsewhere[0]}")
            if any(user in part.users for part in experiment.data.parts.values()):
                return ConfedError(
                    f"user {user!r} was left out of this run: it takes three items in every domain, or, with "
                    f"--set population=all, in one"
                )
        return unknown_name("user", user, cut.user_ids[:100_000])

    def _of_domain(self, domain: str | None) -> tuple[Split | ColdSplit, Mapping[str, str]]:
        """Users and items of the data, or of one of its domains, and the titles that are known."""
        experiment = self._prepared()
        cut, data = experiment.cut, experiment.data
        if isinstance(cut, DomainSplit):
            assert isinstance(data, Domains)
            if domain is None:
                raise ConfedError(f"the run has several domains ({', '.join(cut.parts)}): say which (--domain)")
            if domain not in cut.parts:
                raise unknown_name("domain", domain, cut.parts)
            return cut.parts[domain], data[domain].titles
        assert isinstance(data, Interactions)
        if domain is not None:
            raise ConfedError(f"--domain {domain}: the run has one domain only, leave it out")
        return cut, data.titles

    def _prepared(self) -> Experiment:
        """The data and the model, loaded once."""
        self._experiment = self._experiment or Experiment.prepare(self.settings, self.folder.data())
        return self._experiment


def _preferences(cut: Split | ColdSplit, start: Rows, chosen: Rows) -> Preferences:
    known = np.flatnonzero(cut.training.positives.lengths)
    rows = torch.from_numpy(known)
    before, after = ({name: t.index_select(0, rows) for name, t in points.items()} for points in (start, chosen))
    return Preferences([cut.user_ids[user] for user in known], before, after)


def run(
    method: str,
    dataset: Any,
    *,
    protocol: str | None = None,
    rounds: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    out: str | Path = DEFAULT_OUT,
    folder: str | Path | None = None,
    listener: Listener | None = None,
    **settings: Any,
) -> Run:
    """Train `method` on `dataset` (a registry name, a path, a data frame, `Interactions`, or one of these for each of
    several domains) and evaluate it.

    `options` are hyper-parameters of the method and switches of the protocol; `settings` are fields of `Settings`
    such as `chunk`, `patience` or `eval_every`. The run is kept in `folder`, or in a fresh folder below `out`.
    """
    reset_peak()
    name = _name(dataset)
    chosen = resolve(
        method,
        name,
        protocol=protocol or default_protocol(dataset),
        options=options,
        rounds=rounds,
        seed=seed,
        **settings,
    )
    data = load(dataset)
    chosen = chosen.model_copy(update={"content_hash": data.content_hash, "source": whereabouts(dataset)})
    experiment = Experiment.prepare(chosen, data)
    kept = RunFolder.create(chosen, Path(folder or out), exact=folder is not None)
    if name == "data":
        data.save(kept.domains_path if isinstance(data, Domains) else kept.data_path)
    execute(experiment, kept, listener)
    return Run(kept, experiment)


def _name(dataset: Any) -> str:
    """What a run calls its data; data in memory has no name."""
    return str(dataset) if isinstance(dataset, str | Path) else "data"


def default_protocol(dataset: Any) -> str:
    """`strict`, which for several domains is called `warm`."""
    return "warm" if has_domains(dataset) else "strict"


def resume(path: str | Path, *, rounds: int | None = None, listener: Listener | None = None) -> Run:
    """Go on with a run that was broken off; ends as the unbroken run would. With `rounds`, to that round: who says how
    many gets them, whatever the run's patience.
    """
    reset_peak()
    folder = RunFolder.open(Path(path))
    settings = folder.settings()
    checkpoint = folder.load_checkpoint()
    if rounds is not None:
        if checkpoint and rounds < checkpoint.progress.round:
            raise ConfedError(f"{path}: {checkpoint.progress.round} rounds are done already, {rounds} are asked for")
        settings = validated(Settings, {**settings.model_dump(), "rounds": rounds, "patience": None}, "run")
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
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """One pooled summary per method.

    `rounds` is for those that train in rounds; closed forms take one. `chunk` and an option go to every method that
    knows them, and must be known to one. Whatever can be wrong with methods, options and data is found before the first
    run.
    """
    known = {method: _known_options(method, options or {}) for method in methods}
    for name in options or {}:
        if not any(name in own for own in known.values()):
            raise unknown_option(name, methods)
    chunked = [method for method in methods if has_devices(method)] or methods  # if none has any, its error says so
    own: dict[str, dict[str, Any]] = {
        method: {
            "options": known[method],
            "rounds": rounds if method_named(method).rounds > 1 else None,
            "chunk": chunk if method in chunked else None,
        }
        for method in methods
    }
    said = {name: value for name, value in arguments.items() if name in Settings.model_fields}
    said["protocol"] = said.get("protocol") or default_protocol(dataset)
    data = load(dataset)
    for method in methods:
        Experiment.prepare(resolve(method, _name(dataset), seed=seed, **own[method], **said), data)
    every = range(seed, seed + seeds)
    return [run_seeds(method, dataset, every, **own[method], **arguments) for method in methods]


def _known_options(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    known = set(method_named(method).config_class.model_fields) | set(Protocol.model_fields)
    return {name: value for name, value in options.items() if name.partition(".")[0] in known}


def pool(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summaries of one method over seeds as one: means in place of numbers, with `mean`, `std` and `runs` added."""
    first = dict(summaries[0])
    if len(summaries) == 1:
        return first
    mean = _over_seeds(summaries, lambda values: float(np.mean(values)))
    std = _over_seeds(summaries, lambda values: float(np.std(values, ddof=1)))
    seeds = [summary["seed"] for summary in summaries]
    shares = {"untrained": _mean_share([s["untrained"] for s in summaries])} if "untrained" in first else {}
    runs = [dict(summary) for summary in summaries]
    return {**first, **mean, **shares, "seeds": seeds, "mean": mean, "std": std, "runs": runs}


def _mean_share(shares: Sequence[Any]) -> Any:
    """Of one domain, or of each of several."""
    if isinstance(shares[0], Mapping):
        return {domain: _mean_share([share[domain] for share in shares]) for domain in shares[0]}
    return float(np.mean(shares))


def _over_seeds(summaries: Sequence[Mapping[str, Any]], statistic: Callable[[list[float]], float]) -> dict[str, Any]:
    """The statistic of every measured number, also of those in the sections of views and validation."""
    pooled: dict[str, Any] = {}
    for name, value in summaries[0].items():
        if isinstance(value, Mapping):
            section = _over_seeds([summary[name] for summary in summaries], statistic)
            pooled |= {name: section} if section else {}
        elif "@" in name or name in _MEASURED:
            pooled[name] = statistic([summary[name] for summary in summaries])
    return pooled


_MEASURED = {"seconds", "seconds_per_round", "peak_rss_mb", "rounds", "best_round", "participations"}
_MEASURED |= {"upload_bytes", "download_bytes"}


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
        """Train on a data frame, a file, a registry name or `Interactions`; two items a user are held out."""
        self._run = run(self.method, data, rounds=self.rounds, seed=self.seed, options=self.options, **arguments)
        return self

    def recommend(
        self, user: str | int, k: int = 10, *, domain: str | None = None, filter_seen: bool = True
    ) -> list[Recommendation]:
        return self.run.recommend(user, k, domain=domain, filter_seen=filter_seen)
