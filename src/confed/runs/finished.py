"""What a finished run offers: its summary, its ranks and states, and recommendations."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from torch import Tensor

from confed.clients.replay import Replay
from confed.data.interactions import ONLY
from confed.data.sources import Notice, announce
from confed.data.split import Cut
from confed.errors import ConfedError, unknown_name
from confed.evaluation.metrics import Ranks
from confed.files import unwritable_said
from confed.locks import LOCK_FILES
from confed.methods.registry import method_named
from confed.models.silo import Silo
from confed.ragged import Ragged
from confed.runs.folder import RunFolder
from confed.runs.offers import Offers, Progress, Recommendation
from confed.runs.prepare import Experiment, moved
from confed.scoring import Scorer
from confed.visible import shown

if TYPE_CHECKING:
    import plotly.graph_objects as go

_LEFT_BEHIND = shutil.ignore_patterns(*LOCK_FILES)


class Run:
    """A finished run: its summary, the metrics of every round, and recommendations from its best round."""

    def __init__(self, folder: RunFolder, experiment: Experiment | None = None, data: Any = None) -> None:
        self.folder = folder
        self._data = data
        self.settings = folder.settings()
        self.summary = {**folder.summary(), "run_dir": str(folder.path)}  # folders may be moved
        self._experiment = experiment
        self.stopped = folder.asked_to_stop
        """Whether somebody asked to stop in its last round."""
        folder.go_on()
        self._best: dict[str, Tensor] | None = None
        self._scorers: dict[str | None, Scorer] = {}

    @classmethod
    def open(cls, path: str | Path, data: Any = None) -> Run:
        """The run in a folder. `data` is what it was trained on, where that is not any more where it was."""
        return cls(RunFolder.open(Path(path)), data=data)

    @property
    def metrics(self) -> dict[str, float]:
        """The test metrics of the chosen round, in percent."""
        return {name: value for name, value in self.summary.items() if "@" in name}

    def __repr__(self) -> str:
        return f"Run({self._title()}: {', '.join(f'{name} {value}' for name, value in self._figures())})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in self._figures())
        return f"<b>{escape(self._title())}</b><table>{rows}</table>"

    def _title(self) -> str:
        of = self.summary
        return f"{shown(of['method'])} on {shown(of['dataset'])}, {of['protocol']}, seed {of['seed']}"

    def _figures(self) -> Iterator[tuple[str, str]]:
        for name in ("hr@10", "ndcg@10"):
            if name in self.summary:
                popular = self.summary.get("popularity")
                beside = f" (popularity {popular[name]:.2f})" if popular else ""
                yield name.upper(), f"{self.summary[name]:.2f}{beside}"
        yield "round", f"{self.summary['best_round']} of {self.summary['rounds']}"

    def save(self, path: str | Path) -> Run:
        """Keep the run in a folder that is not there yet; the run that lies there."""
        if Path(path).exists():
            raise ConfedError(f"{path}: is there already, give another folder")
        try:
            with unwritable_said(Path(path)):
                shutil.copytree(self.folder.path, path, ignore=_LEFT_BEHIND, copy_function=_copied)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return Run.open(path)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """One record per round, as in metrics.jsonl."""
        return self.folder.metrics()

    @property
    def history(self) -> pl.DataFrame:
        """One row per round: loss, seconds, bytes, and metrics such as `validation_hr@10` of the view that counts; of
        other views the name stands before (`global_test_hr@10`).
        """
        rows = []
        for line in self.lines:
            row = {name: value for name, value in line.items() if isinstance(value, int | float | None)}
            for view, parts in line["views"].items():
                before = "" if view == self.summary["view"] else f"{view}_"
                for part, metrics in parts.items():
                    row |= {f"{before}{part}_{name}": value for name, value in metrics.items() if "@" in name}
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

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
        method = method_named(self.settings.method)
        views = method.facts(self.settings.config(), self.settings.protocol.view).get("views", ())
        return self.summary["view"] == "local" and len(views) > 1 and not self.domains

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
        self,
        user: str | int | None = None,
        k: int = 10,
        *,
        history: Sequence[str | int] | None = None,
        domain: str | None = None,
        filter_seen: bool = True,
    ) -> list[Recommendation]:
        """The `k` best items of one user, best first; items the user already has are left out.

        Of somebody who was not in the data, `history` has the items instead. Where the data has several domains,
        `domain` says of which the items are.
        """
        if (user is None) == (history is None):
            raise ConfedError("recommend to a user, or to somebody new by a history of items: give one of the two")
        history = [history] if isinstance(history, str) else history
        offers = self.offers(domain, k, filter_seen=filter_seen)
        return (
            offers.to_user(str(user)) if user is not None else offers.to_newcomer([str(item) for item in history or ()])
        )

    def recommend_all(
        self,
        k: int = 10,
        *,
        domain: str | None = None,
        filter_seen: bool = True,
        progress: Progress | None = None,
        notice: Notice | None = None,
    ) -> pl.DataFrame:
        """The `k` best items of every user: columns user, rank, item, title (where titles are known) and score. Whom
        the run left out for too few items is served as somebody new, and `notice` hears of how many.
        """
        everybody = self.offers(domain, k, filter_seen=filter_seen).to_everybody(progress)
        for text in everybody.notes:
            announce(text, notice)
        return everybody.frame

    def similar(self, item: str | int, k: int = 10, *, domain: str | None = None) -> list[Recommendation]:
        """The `k` items that are most like one to the method: by the angle between the vectors it has of them."""
        return self.offers(domain, k).like(str(item))

    def figures(self) -> dict[str, go.Figure]:
        """The pictures of the report, by their titles, as plotly figures."""
        from confed.report import figures  # noqa: PLC0415 - plotly takes a second to load

        return figures(self)

    def report(self, path: str | Path | None = None, *, samples: bool = True) -> Path:
        """Write a self-contained HTML page to `path`, by default in the run's folder; without `samples`, nobody's items
        are on it.
        """
        from confed.report import write_report  # noqa: PLC0415 - plotly takes a second to load

        return write_report(self, self.folder.path / "report.html" if path is None else Path(path), samples=samples)

    def offers(self, domain: str | None = None, k: int = 10, *, filter_seen: bool = True) -> Offers:
        """What the chosen round offers to users of the data, or of one of its domains."""
        cut, titles = self._of_domain(domain)
        return Offers(self, cut, titles, domain, k, filter_seen=filter_seen)

    def newcomers(self, histories: Ragged, domain: str | None = None) -> Tensor:
        """(newcomers, items): scores of people with these items, by number, who were not in the data."""
        of, number = self._prepared(), int(self.summary["best_round"])
        return of.method.newcomers(of.terms, of.cut, self.best_state(), number, histories, domain or ONLY)

    def item_vectors(self, domain: str | None = None) -> Tensor:
        """(items, d): what the method has of every item."""
        of = self._prepared()
        if not self.state_round:
            raise ConfedError(f"{self.folder.path}: the chosen round is the first, before which nothing was learned")
        return of.method.item_vectors(of.terms, of.cut, self.best_state(), domain or ONLY)

    def scorer(self, domain: str | None = None) -> Scorer:
        """From users' numbers to their (users, items) scores in the chosen round."""
        self._require_domain(domain)
        if domain not in self._scorers:
            experiment, number = self._prepared(), int(self.summary["best_round"])
            self._scorers[domain] = experiment.method.scorer(
                experiment.terms, experiment.cut, self.best_state(), number, domain or ONLY
            )
        return self._scorers[domain]

    def left_out(self, domain: str | None = None) -> dict[str, list[str]]:
        """The items of users whom the data has and the run had to leave out, for having too few."""
        of, name = self._prepared(), domain or ONLY
        left = of.whole.parts[name].frame.filter(~pl.col("user").is_in(of.cut.parts[name].user_ids))
        return dict(left.group_by("user", maintain_order=True).agg("item").iter_rows())

    def unknown_user(self, user: str) -> ConfedError:
        """Somebody whom another domain knows is no slip of the pen. Who else is in the data is nobody's business."""
        experiment = self._prepared()
        elsewhere = [name for name, part in experiment.cut.parts.items() if user in part.user_ids]
        if elsewhere:
            there = ", ".join(elsewhere)
            return ConfedError(f"user {user!r} is known to {there} only: ask for --domain {elsewhere[0]}")
        return ConfedError(
            f"user {user!r} is nobody whom this run knows (who has too few items is left out): give an id as the data "
            f"has it, or some items by --history"
        )

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
        if self._experiment is None:
            data = self.folder.data() if self._data is None else moved(self.settings, self._data)
            self._experiment = Experiment.prepare(self.settings, data, done=True)
        return self._experiment


def _copied(source: str, target: str) -> None:
    """A file of a run; what goes wrong is said at once and of this file."""
    with unwritable_said(Path(target)):
        shutil.copy2(source, target)
