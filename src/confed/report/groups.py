"""What there is to see of clients that are grouped, and of items that fall into categories."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from confed.analysis.clients import client_tables
from confed.analysis.elbow import ElbowCurve
from confed.analysis.items import item_map
from confed.analysis.participation import participation
from confed.analysis.run import Run
from confed.analysis.users import user_clusters
from confed.report.section import Picture, Section
from confed.report.training import noted

_MOST_CLIENTS = 3000
"""Clients whose tables are clustered; their inner products and the picture take seconds up to here."""
_MOST_ROWS = 8_000_000
"""Rows of all clients' tables together, for the sake of memory."""


def groups(run: Run) -> Section | None:
    if not noted(run, "members"):
        return None
    text = (
        "In every round the clients that are like a random one on a random category of items get a mean of their own. "
        "Bars count clients by the number of rounds in which they were among them."
    )
    return Section("Who was in the similar group", text, [Picture.of(participation(run.lines, run.summary["users"]))])


def elbow(run: Run) -> Section | None:
    state = run.best_state()
    if "server.scores" not in state or not len(state["server.scores"]):
        return None
    curve = ElbowCurve(state["server.scores"].numpy(), int(state["server.elbow"]))
    text = f"Round {run.state_round}: every participant's similarity to the core user on one category."
    return Section("The elbow", text, [Picture.of(curve)])


def items(run: Run) -> Section | None:
    state = run.best_state()
    membership = state.get("server.membership")
    if membership is None or int(membership.min()) < 0:
        return None
    table = np.concatenate([value.numpy() for value in _mean_tables(state)], axis=1)
    shown = item_map(table, membership.numpy())
    if shown is None:
        return None
    text = f"Rows of the clients' mean table after round {run.state_round}, some categories drawn at random."
    return Section("Items by category", text, [Picture.of(shown)])


def _mean_tables(state: dict[str, Tensor]) -> list[Tensor]:
    """The mean item tables: kept as such where clients keep their own, else the server's."""
    means = [value for name, value in state.items() if name.startswith("server.mean_")]
    return means or [value for name, value in state.items() if name.startswith("server.") and name.endswith("items")]


def users(run: Run) -> Section | None:
    if run.summary["users"] > _MOST_CLIENTS or run.summary["users"] * run.summary["items"] > _MOST_ROWS:
        return None
    if run.summary["view"] not in ("local", "pushed"):  # all have the server's
        return None
    tables = client_tables(run)
    if tables is None:
        return None
    found = user_clusters(tables.flatten(1).numpy())
    as_trained = run.summary["view"] == "local"
    state = "as clients trained them, which is what a server sees" if as_trained else "as the server's step left them"
    text = f"Clients' whole item tables in round {run.summary['best_round']}, {state}."
    return Section("K-Means on clients", text, [Picture(found.figure(k), found.said(k)) for k in found.labels])
