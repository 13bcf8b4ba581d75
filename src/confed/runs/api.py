"""The Python API: run a method, compare several, recommend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from confed.data import Interactions, load_dataset
from confed.errors import ConfedError, unknown_name
from confed.methods.registry import method_named
from confed.runs.folder import RunFolder
from confed.runs.runner import Experiment, Listener, execute
from confed.runs.settings import Settings, resolve

DEFAULT_OUT = Path("runs")


@dataclass(frozen=True)
class Recommendation:
    """One recommended item, by its original id."""

    item: str
    score: float
    title: str | None = None


class Run:
    """A finished run: its summary, the metrics of every round, and recommendations from its best round."""

    def __init__(self, folder: RunFolder, data: Interactions | None = None) -> None:
        self.folder = folder
        self.settings = folder.settings()
        self.summary = folder.summary()
        self._data = data
        self._experiment: Experiment | None = None

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

    def recommend(self, user: str | int, k: int = 10, *, filter_seen: bool = True) -> list[Recommendation]:
        """The `k` best items of one user, best first; items the user already has are left out."""
        if k < 1:
            raise ConfedError(f"k = {k}: ask for at least one item")
        experiment = self._prepared()
        cut = experiment.cut
        if str(user) not in cut.user_ids:
            raise unknown_name("user", str(user), cut.user_ids[:100_000])
        client = cut.user_ids.index(str(user))
        checkpoint = self.folder.load_checkpoint()
        if checkpoint is None:
            raise ConfedError(f"{self.folder.path}: the checkpoint is missing, nothing can be recommended")
        number = checkpoint.progress.best_round
        scores = experiment.trainer.serve(checkpoint.best, number, np.array([client]))[0].double()
        if filter_seen:
            scores[torch.from_numpy(cut.seen[client])] = -torch.inf
        best = torch.topk(scores, min(k, len(scores)))
        titles = experiment.data.titles
        return [
            Recommendation(cut.item_ids[item], score, titles.get(cut.item_ids[item]))
            for item, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if score > float("-inf")
        ]

    def _prepared(self) -> Experiment:
        if self._experiment is None:
            self._experiment = Experiment.prepare(self.settings, self._data)
        return self._experiment


def run(
    method: str,
    dataset: Any,
    *,
    protocol: str = "strict",
    rounds: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    out: str | Path = DEFAULT_OUT,
    folder: str | Path | None = None,
    listener: Listener | None = None,
    **settings: Any,
) -> Run:
    """Train `method` on `dataset` (a registry name, a path, a data frame or `Interactions`) and evaluate it.

    `options` are hyper-parameters of the method and switches of the protocol; `settings` are fields of `Settings`
    such as `chunk`, `patience` or `eval_every`. The run is kept in `folder`, or in a fresh folder below `out`.
    """
    name = dataset if isinstance(dataset, str) else str(dataset) if isinstance(dataset, Path) else "data"
    chosen = resolve(method, name, protocol=protocol, options=options, rounds=rounds, seed=seed, **settings)
    data = load_dataset(dataset)
    experiment = Experiment.prepare(chosen, data)
    kept = RunFolder.create(chosen, Path(folder or out), exact=folder is not None)
    if name == "data":
        data.save(kept.data_path)
        chosen = chosen.model_copy(update={"dataset": str(kept.data_path)})
        kept.write_settings(chosen)
    execute(experiment, kept, listener)
    return Run(kept, data)


def resume(path: str | Path, *, rounds: int | None = None, listener: Listener | None = None) -> Run:
    """Go on with a run that was broken off, or with more `rounds`; ends as the unbroken run would."""
    folder = RunFolder.open(Path(path))
    settings = folder.settings()
    if rounds is not None:
        settings = Settings.model_validate({**settings.model_dump(), "rounds": rounds})
        folder.write_settings(settings)
    execute(Experiment.prepare(settings), folder, listener)
    return Run(folder)


def run_seeds(method: str, dataset: Any, seeds: Iterable[int], **arguments: Any) -> dict[str, Any]:
    """Several seeds of one run; the summary holds `runs`, and the `mean` and `std` of every metric."""
    return pool([run(method, dataset, seed=seed, **arguments).summary for seed in seeds])


def compare(
    methods: Sequence[str], dataset: Any, *, seeds: int = 1, seed: int = 0, rounds: int | None = None, **arguments: Any
) -> list[dict[str, Any]]:
    """One pooled summary per method. `rounds` is for those that train in rounds; closed forms take one."""
    for method in methods:
        method_named(method)  # a typing error in the last name should not cost the runs before it
    return [
        run_seeds(
            method,
            dataset,
            range(seed, seed + seeds),
            rounds=rounds if method_named(method).rounds > 1 else None,
            **arguments,
        )
        for method in methods
    ]


def pool(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summaries of one method over seeds as one: means in place of metrics, with `mean`, `std` and `runs`."""
    first = summaries[0]
    if len(summaries) == 1:
        return dict(first)
    measured = [name for name in first if "@" in name] + ["seconds", "seconds_per_round", "peak_rss_mb"]
    values = {name: np.array([summary[name] for summary in summaries]) for name in measured}
    mean = {name: float(value.mean()) for name, value in values.items()}
    std = {name: float(value.std(ddof=1)) for name, value in values.items()}
    kept = (
        "method",
        "dataset",
        "protocol",
        "view",
        "published",
        "rounds",
        "participations",
        "upload_bytes",
        "download_bytes",
    )
    return {
        **{name: first[name] for name in kept},
        "seeds": [summary["seed"] for summary in summaries],
        **mean,
        "mean": mean,
        "std": std,
        "runs": [dict(summary) for summary in summaries],
    }


class Recommender:
    """The shortest way from a data frame to recommendations.

    >>> Recommender(method="pfedrec").fit(my_dataframe).recommend("alice", k=10)
    """

    def __init__(self, method: str = "pfedrec", *, rounds: int | None = None, seed: int = 0, **options: Any) -> None:
        self.method = method
        self.rounds = rounds
        self.seed = seed
        self.options = options

    def fit(self, data: Any, **arguments: Any) -> Recommender:
        """Train on a data frame, a file, a registry name or `Interactions`; two items a user are held out."""
        self.run = run(self.method, data, rounds=self.rounds, seed=self.seed, options=self.options, **arguments)
        return self

    def recommend(self, user: str | int, k: int = 10, *, filter_seen: bool = True) -> list[Recommendation]:
        return self.run.recommend(user, k, filter_seen=filter_seen)
