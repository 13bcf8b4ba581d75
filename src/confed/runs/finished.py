"""What a finished run offers: its summary, its ranks and states, and recommendations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confed.clients.replay import Replay
from confed.data.interactions import ONLY
from confed.data.split import Cut
from confed.errors import ConfedError, unknown_name
from confed.evaluation.metrics import Ranks
from confed.models.silo import Silo
from confed.ragged import Ragged
from confed.runs.folder import RunFolder
from confed.runs.prepare import Experiment
from confed.scoring import Scorer


@dataclass(frozen=True)
class Recommendation:
    """One recommended item, by its original id."""

    item: str
    score: float
    title: str | None = None


class Run:
    """A finished run: its summary, the metrics of every round, and recommendations from its best round."""

    def __init__(self, folder: RunFolder, experiment: Experiment | None = None) -> None:
        self.folder = folder
        self.settings = folder.settings()
        self.summary = folder.summary()
        self._experiment = experiment
        self._best: dict[str, Tensor] | None = None
        self._scorers: dict[str | None, Scorer] = {}

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
        self._require_domain(domain)
        ranks = self.folder.load_ranks()
        view = view or self.summary["view"]
        name = f"{view}.{domain}" if domain else view
        if f"{name}.above" not in ranks:
            raise ConfedError(f"{self.folder.path}: no ranks of the view {view!r} were kept")
        return Ranks(ranks[f"{name}.above"].numpy(), ranks[f"{name}.equal"].numpy())

    @property
    def state_round(self) -> int:
        """The round after which `best_state` stood: the one before the chosen round, where that has to be rebuilt."""
        return int(self.summary["best_round"]) - self.is_rebuilt

    @property
    def is_rebuilt(self) -> bool:
        """Whether the chosen round has to be trained again: its end replaced what it was scored with."""
        return self.summary["view"] == "local" and len(self.summary["views"]) > 1 and not self.domains

    def best_state(self) -> dict[str, Tensor]:
        """Server and client state from which the chosen round is served, by name; see `state_round`."""
        if self._best is None:
            self._best = self.folder.load_best()
        if self._best is None:
            raise ConfedError(f"{self.folder.path}: the checkpoint is missing")
        return self._best

    def replay(self, users: Sequence[int], *, everybody: bool = False) -> Replay | None:
        """The clients numbered in `users` as they were scored in the chosen round, with all they had then; with
        `everybody`, as the next local training would leave each of them. None where people are no clients.
        """
        experiment, clients = self._prepared(), torch.as_tensor(users, dtype=torch.int64)
        return experiment.method.replay(
            experiment.terms,
            experiment.cut,
            self.best_state(),
            int(self.summary["best_round"]),
            clients,
            everybody=everybody,
        )

    def companies(self, *, start: bool = False) -> Mapping[str, Silo]:
        """By domain, its company as it stood in the chosen round, or before the first; empty where there are none."""
        experiment = self._prepared()
        return experiment.method.companies(experiment.terms, experiment.cut, None if start else self.best_state())

    def user_ids(self, domain: str | None = None) -> list[str]:
        """The original ids of the users, by their numbers."""
        return self._of_domain(domain)[0].user_ids

    def item_names(self, domain: str | None = None) -> list[str]:
        """What the items are called, by their numbers: the title where one is known, else the original id."""
        cut, titles = self._of_domain(domain)
        return [titles.get(item) or item for item in cut.item_ids]

    def training_items(self, domain: str | None = None) -> Ragged:
        """Of every user, the numbers of the items trained on."""
        cut, _ = self._of_domain(domain)
        return cut.training.positives

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains; empty where there is one only."""
        return tuple(self.summary.get("domains", ()))

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
        scores = self.scorer(domain)(torch.tensor([client]))[0].double()
        if filter_seen:
            scores[torch.from_numpy(cut.seen[client])] = -torch.inf
        best = torch.topk(scores, min(k, len(scores)))
        return [
            Recommendation(cut.item_ids[item], score, titles.get(cut.item_ids[item]))
            for item, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if score > float("-inf")
        ]

    def scorer(self, domain: str | None = None) -> Scorer:
        """From users' numbers to their (users, items) scores in the chosen round."""
        self._require_domain(domain)
        if domain not in self._scorers:
            experiment, number = self._prepared(), int(self.summary["best_round"])
            self._scorers[domain] = experiment.method.scorer(
                experiment.terms, experiment.cut, self.best_state(), number, domain or ONLY
            )
        return self._scorers[domain]

    def _unknown_user(self, user: str, cut: Cut) -> ConfedError:
        """Somebody whom another domain knows is no slip of the pen."""
        experiment = self._prepared()
        if self.domains:
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

    def _of_domain(self, domain: str | None) -> tuple[Cut, Mapping[str, str]]:
        """Users and items of the data, or of one of its domains, and the titles that are known."""
        self._require_domain(domain)
        experiment = self._prepared()
        return experiment.cut.parts[domain or ONLY], experiment.data.parts[domain or ONLY].titles

    def _require_domain(self, domain: str | None) -> None:
        """One of the run's, where it has several; else none."""
        if not self.domains and domain is not None:
            raise ConfedError(f"--domain {domain}: the run has one domain only, leave it out")
        if self.domains and domain is None:
            raise ConfedError(f"the run has several domains ({', '.join(self.domains)}): say which (--domain)")
        if domain is not None and domain not in self.domains:
            raise unknown_name("domain", domain, self.domains)

    def _prepared(self) -> Experiment:
        """The data and the model, loaded once."""
        self._experiment = self._experiment or Experiment.prepare(self.settings, self.folder.data(), done=True)
        return self._experiment
