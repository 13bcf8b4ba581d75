"""What a finished run offers: its summary, its ranks and states, and recommendations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from confed.data import Interactions
from confed.data.domain_split import ColdSplit, DomainSplit
from confed.data.domains import Domains
from confed.data.split import Split
from confed.engines.domains import SiloEngine
from confed.engines.local import LocalEngine
from confed.errors import ConfedError, unknown_name
from confed.evaluation.metrics import Ranks
from confed.models.silo import Rows
from confed.ragged import Ragged
from confed.runs.folder import RunFolder
from confed.runs.runner import Experiment, make_domain_trainer


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

    def training_items(self, domain: str | None = None) -> Ragged:
        """Of every user, the numbers of the items trained on."""
        cut, _ = self._of_domain(domain)
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
        self._require_domain(domain)
        experiment = self._prepared()
        cut, data = experiment.cut, experiment.data
        if domain is None:
            assert isinstance(cut, Split) and isinstance(data, Interactions)
            return cut, data.titles
        assert isinstance(cut, DomainSplit) and isinstance(data, Domains)
        return cut.parts[domain], data[domain].titles

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
        self._experiment = self._experiment or Experiment.prepare(self.settings, self.folder.data())
        return self._experiment


def _preferences(cut: Split | ColdSplit, start: Rows, chosen: Rows) -> Preferences:
    known = np.flatnonzero(cut.training.positives.lengths)
    rows = torch.from_numpy(known)
    before, after = ({name: t.index_select(0, rows) for name, t in points.items()} for points in (start, chosen))
    return Preferences([cut.user_ids[user] for user in known], before, after)
