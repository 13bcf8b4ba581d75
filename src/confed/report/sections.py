"""What a report shows of a run, as far as the run has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from torch import Tensor

from confed.analysis.clients import client_tables, drift, has_two_tables, two_scores
from confed.analysis.correlation import feature_correlation
from confed.analysis.curves import (
    clipped_shares,
    domain_curves,
    domain_losses,
    learning_curves,
    lengths_sent,
    loss_curve,
    seconds_curve,
    traffic,
)
from confed.analysis.degradation import degradation
from confed.analysis.elbow import ElbowCurve
from confed.analysis.items import item_map
from confed.analysis.overlap import view_overlap
from confed.analysis.participation import participation
from confed.analysis.preferences import preference_maps
from confed.analysis.users import user_clusters
from confed.runs.finished import Run

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
    """All sections the run has data for, in reading order; `progress` hears of each that is made."""
    for title, make in (
        ("Learning curves", _learning),
        ("Every domain by itself", _domains),
        ("Time and traffic", _costs),
        ("Noise on what companies send", _noise),
        ("How the companies see their users", _preferences),
        ("Who was in the similar group", _participation),
        ("The elbow", _elbow),
        ("Items by category", _items),
        ("K-Means on clients", _users),
        ("Two views of the items", _overlap),
        ("What the two views have in common", _correlation),
        ("Consensus degradation", _degradation),
    ):
        found = make(run)
        if found:
            progress(title)
            text, figures = found
            yield Section(title, text, figures)


Found = tuple[str, tuple[go.Figure, ...]]


def _learning(run: Run) -> Found:
    figures = [learning_curves(run.lines, metric).figure() for metric in _METRICS]
    if any(line["loss"] is not None for line in run.lines) and not _noted(run, "losses"):
        figures.append(loss_curve(run.lines).figure())
    chosen = f"The round that validation chose is {run.summary['best_round']}, by the {run.summary['view']} view."
    means = "means over domains, " if run.domains else ""
    return f"Against sampled candidates, {means}in percent. {chosen}", tuple(figures)


_METRICS = ("hr@10", "ndcg@10")


def _noted(run: Run, name: str) -> bool:
    """Whether the server's notes have this."""
    return name in run.lines[0].get("server", {})


def _domains(run: Run) -> Found | None:
    if not run.domains:
        return None
    figures = [domain_curves(run.lines, metric, run.summary["view"]).figure() for metric in _METRICS]
    if _noted(run, "losses"):
        figures.append(domain_losses(run.lines).figure())
    return "One round is chosen for all domains, by their mean; a domain alone might choose another.", tuple(figures)


def _costs(run: Run) -> Found:
    figures = [seconds_curve(run.lines).figure()]
    text = f"{run.summary['seconds']:.0f} seconds in all, peak memory {run.summary['peak_rss_mb']:.0f} MB."
    if run.summary["upload_bytes"]:
        figures.append(traffic(run.lines).figure())
        text += f" Traffic counts {_TRAVELS_BETWEEN_COMPANIES if run.domains else _TRAVELS}"
    return text, tuple(figures)


_TRAVELS = "whole tables as they travel, beside what the server's mean to everybody would weigh."
_TRAVELS_BETWEEN_COMPANIES = "rows about people whom several companies know; a client is a company."


def _noise(run: Run) -> Found | None:
    if not _noted(run, "noise") or not run.domains:
        return None
    note = next(iter(run.lines[0]["server"]["noise"].values()))
    text = (
        f"What a company says of a person is clipped to length {note['clip']:g}; then every number gets Gaussian noise "
        f"of deviation {note['noise_deviation']:g}. That hides a row in one upload with "
        f"ε = {note['epsilon_of_one_upload']:.3g} at δ = 1e-5 (above 1 that is an order of magnitude only); rounds and "
        f"companies add up, and a person's interactions shape other people's rows as well."
    )
    return text, (lengths_sent(run.lines).figure(), clipped_shares(run.lines).figure())


def _preferences(run: Run) -> Found | None:
    maps = preference_maps(run)
    if not maps:
        return None
    text = (
        "Some users of every domain on the plane of the two main directions of their means. An ellipse is one standard "
        "deviation of a user's preferences, unless the caption says less; a colour is a cluster that co-clustering "
        "finds among the users shown, on every picture anew. Compactness is the mean squared distance to the centre of "
        "the own cluster relative to that of all pairs: small is compact, clusters by lot have the value beside it. "
        "Training by itself makes users of a kind alike: what co-clustering adds is seen against a run without."
    )
    return text, tuple(each.figure() for each in maps)


def _participation(run: Run) -> Found | None:
    if not _noted(run, "members"):
        return None
    seen = participation(run.lines, run.summary["users"])
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
    tables = client_tables(run)
    if tables is None or run.summary["view"] == "global":
        return None
    found = user_clusters(tables.flatten(1).numpy())
    as_trained = run.summary["view"] == "local"
    state = "as clients trained them, which is what a server sees" if as_trained else "as the server's step left them"
    text = f"Clients' whole item tables in round {run.summary['best_round']}, {state}."
    return text, tuple(found.figure(k) for k in found.labels)


def _overlap(run: Run) -> Found | None:
    scores = two_scores(run)
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
    replay = run.replay([client])
    tables = replay.two_tables() if replay else None
    if tables is None:
        return None
    found = feature_correlation(tables[0][0], tables[1][0], client)
    return "Products of features over all items; nothing but white means that the tables are orthogonal.", (
        found.figure(),
    )


def _degradation(run: Run) -> Found | None:
    distance = drift(run) if has_two_tables(run) else None
    if distance is None:
        return None
    found = degradation(distance.numpy(), run.training_items())
    text = (
        "How far one round of local training takes the shared table of every client from the consensus, against how "
        "unlike others the client is. Colour: the number of items it trained on, which moves a table as well."
    )
    return text, (found.figure(),)
