"""What a report shows of a run, as far as the run has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from torch import Tensor

from confed.analysis.correlation import feature_correlation
from confed.analysis.curves import learning_curves, loss_curve, seconds_curve, traffic
from confed.analysis.degradation import degradation
from confed.analysis.elbow import ElbowCurve
from confed.analysis.items import item_map
from confed.analysis.overlap import view_overlap
from confed.analysis.participation import participation
from confed.analysis.users import user_clusters
from confed.runs.api import Run

_MOST_CLIENTS = 3000
"""Clients whose tables are clustered; their inner products and the picture take seconds up to here."""
_MOST_ROWS = 8_000_000
"""Rows of all clients' tables together, for the sake of memory."""
_SHOWN_CLIENT = 22
"""Whose features are shown; the paper shows client 22, for no reason it gives."""


@dataclass(frozen=True)
class Section:
    """A figure, and what there is to see on it."""

    title: str
    text: str
    figures: tuple[go.Figure, ...]


def sections(run: Run, progress: Callable[[str], None] = lambda title: None) -> Iterator[Section]:
    """All sections the run has data for, in reading order; `progress` hears of each before it is made."""
    for title, make in (
        ("Learning curves", _learning),
        ("Time and traffic", _costs),
        ("Who was in the similar group", _participation),
        ("The elbow", _elbow),
        ("Items by category", _items),
        ("K-Means on clients", _users),
        ("Two views of the items", _overlap),
        ("What the two views have in common", _correlation),
        ("Consensus degradation", _degradation),
    ):
        progress(title)
        found = make(run)
        if found:
            text, figures = found
            yield Section(title, text, figures)


Found = tuple[str, tuple[go.Figure, ...]]


def _learning(run: Run) -> Found:
    figures = [learning_curves(run.history, metric).figure() for metric in ("hr@10", "ndcg@10")]
    if any(line["loss"] is not None for line in run.history):
        figures.append(loss_curve(run.history).figure())
    chosen = f"The round that validation chose is {run.summary['best_round']}, by the {run.summary['view']} view."
    return f"Against sampled candidates, in percent. {chosen}", tuple(figures)


def _costs(run: Run) -> Found:
    figures = [seconds_curve(run.history).figure()]
    text = f"{run.summary['seconds']:.0f} seconds in all, peak memory {run.summary['peak_rss_mb']:.0f} MB."
    if run.summary["upload_bytes"]:
        figures.append(traffic(run.history).figure())
        text += " Traffic counts whole tables as they travel, beside what the server's mean to everybody would weigh."
    return text, tuple(figures)


def _participation(run: Run) -> Found | None:
    if "members" not in run.history[0].get("server", {}):
        return None
    seen = participation(run.history, run.summary["users"])
    text = (
        f"On average {100 * seen.mean_share:.1f} % of the clients were in a group that got its own mean; "
        f"{100 * seen.share_above():.1f} % were in one in more than 70 % of the rounds."
    )
    return text, (seen.figure(),)


def _elbow(run: Run) -> Found | None:
    state = run.best_state()
    if "server.scores" not in state or not len(state["server.scores"]):
        return None
    curve = ElbowCurve(state["server.scores"].numpy(), int(state["server.elbow"]))
    text = f"Round {run.state_round}: every participant's similarity to the core user on one category."
    return text, (curve.figure(),)


def _items(run: Run) -> Found | None:
    state = run.best_state()
    membership = state.get("server.membership")
    if membership is None or int(membership.min()) < 0:
        return None
    table = np.concatenate([value.numpy() for value in _mean_tables(state)], axis=1)
    shown = item_map(table, membership.numpy())
    if shown is None:
        return None
    text = f"Rows of the clients' mean table after round {run.state_round}, some categories drawn at random."
    return text, (shown.figure(),)


def _mean_tables(state: dict[str, Tensor]) -> list[Tensor]:
    """The mean item tables: kept as such where clients keep their own, else the server's."""
    means = [value for name, value in state.items() if name.startswith("server.mean_")]
    return means or [value for name, value in state.items() if name.startswith("server.") and name.endswith("items")]


def _users(run: Run) -> Found | None:
    if run.summary["users"] > _MOST_CLIENTS or run.summary["users"] * run.summary["items"] > _MOST_ROWS:
        return None
    tables = run.client_tables()
    if tables is None or run.summary["view"] == "global":
        return None
    found = user_clusters(tables.flatten(1).numpy())
    as_trained = run.summary["view"] == "local"
    state = "as clients trained them, which is what a server sees" if as_trained else "as the server's step left them"
    text = f"Clients' whole item tables in round {run.summary['best_round']}, {state}."
    return text, tuple(found.figure(k) for k in found.labels)


def _overlap(run: Run) -> Found | None:
    scores = run.two_scores()
    if scores is None:
        return None
    found = view_overlap(scores)
    text = (
        f"Every client's ranking by what all share against its ranking by what is its own, round "
        f"{run.summary['best_round']}: mean overlap {found.mean:.3f}, 1 where both are the same."
    )
    return text, (found.figure(),)


def _correlation(run: Run) -> Found | None:
    client = min(_SHOWN_CLIENT, run.summary["users"] - 1)
    tables = run.two_tables([client])
    if tables is None:
        return None
    found = feature_correlation(tables[0][0], tables[1][0], client)
    return "Products of features over all items; nothing but white means that the tables are orthogonal.", (
        found.figure(),
    )


def _degradation(run: Run) -> Found | None:
    distance = run.drift() if run.has_two_tables else None
    if distance is None:
        return None
    found = degradation(distance.numpy(), run.training_items)
    text = (
        "How far one round of local training takes the shared table of every client from the consensus, against how "
        "unlike others the client is. Colour: the number of items it trained on, which moves a table as well."
    )
    return text, (found.figure(),)
