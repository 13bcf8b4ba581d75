"""Users as companies see them: distributions as ellipses on a plane, coloured by cluster (FPPDM++, figure 1).

The plane is that of the two main directions of the means that are shown, for every picture its own. A user's ellipse is
the outline of its Gaussian on that plane, one standard deviation from the mean, or, where nothing but ellipses would be
seen, a part of it that the caption names; where a method knows users as points, there are dots only.

The clusters are those that co-clustering finds among the users that are shown, as it does among the users of a batch,
for every picture anew: colours of two pictures have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from confed.analysis.run import Run
from confed.analysis.style import SERIES, figure
from confed.models.compactness import CoClustering
from confed.models.distributions import unnamed
from confed.models.silo import Rows
from confed.random import Stream, fingerprint

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_USERS = 150
_CORNERS = 33
"""Of the line that stands for an ellipse, the first and the last being one."""
_DIVISORS = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]


@dataclass(frozen=True)
class Cloud:
    """Some users at one moment."""

    places: Floats
    """(users, 2) their means on the plane."""
    covariances: Floats | None
    """(users, 2, 2) on the plane; None where users are points."""
    cluster: Ints
    """(users,) cluster 0 is the largest."""
    compactness: float
    """Mean squared distance to the centre of the own cluster, relative to that of all pairs; small is compact."""

    @property
    def clusters(self) -> int:
        return int(self.cluster.max()) + 1

    @property
    def by_chance(self) -> float:
        """The compactness to expect of as many clusters that are drawn by lot."""
        return (len(self.cluster) - self.clusters) / (2 * len(self.cluster))

    @property
    def shrunk(self) -> int:
        """By what ellipses are to be divided so that they are hardly wider than the means are spread: 1, 2, 5, 10, …"""
        if self.covariances is None:
            return 1
        radius = np.sqrt(np.median(np.trace(self.covariances, axis1=1, axis2=2)))
        spread = np.sqrt((self.places**2).sum(axis=1).mean())
        return next((by for by in _DIVISORS if radius <= by * spread), 1)

    def outlines(self, deviations: float = 1.0) -> Floats | None:
        """(users, corners, 2): so many standard deviations around every mean."""
        if self.covariances is None:
            return None
        turn = np.linspace(0, 2 * np.pi, _CORNERS)
        variances, axes = np.linalg.eigh(self.covariances)
        lengths = deviations * np.sqrt(np.clip(variances, 0, None))
        around: Floats = np.einsum("nij,nj,jc->nci", axes, lengths, np.array([np.cos(turn), np.sin(turn)]))
        return self.places[:, None] + around


@dataclass(frozen=True)
class PreferenceMap:
    """Some users of a domain, at one moment or more."""

    domain: str
    users: list[str]
    clouds: Mapping[str, Cloud]
    """By the name of the moment."""

    def figure(self, moment: str) -> go.Figure:
        """Length is the same in every direction."""
        title = f"{self.domain}, {moment}"
        made = figure(_traces(self.clouds[moment]), title, "", "", showlegend=False)
        return made.update_yaxes(scaleanchor="x", zeroline=False)

    def said(self, moment: str) -> str:
        """What is seen."""
        cloud = self.clouds[moment]
        compared = f"compactness {cloud.compactness:.3f}, clusters by lot have {cloud.by_chance:.3f}"
        drawn = "" if cloud.shrunk == 1 else f" Ellipses have 1/{cloud.shrunk} of a deviation."
        return f"{len(self.users)} users in {cloud.clusters} clusters: {compared}.{drawn}"


def _traces(cloud: Cloud) -> list[Any]:
    """Ellipses, and the means. These say who is who by number: the picture should not name people."""
    outlines = cloud.outlines(1 / cloud.shrunk)
    x, y = cloud.places.T.astype(np.float32)
    said = [f"user {number}, cluster {cluster}" for number, cluster in enumerate(cloud.cluster)]
    marker = {"color": [_colour(cluster) for cluster in cloud.cluster], "size": 5}
    means = go.Scatter(x=x, y=y, mode="markers", marker=marker, text=said, hoverinfo="text")
    if outlines is None:
        return [means]
    return [*(_ellipses(outlines[cloud.cluster == each], each) for each in range(cloud.clusters)), means]


def _ellipses(outlines: Floats, cluster: int) -> go.Scatter:
    """Of a cluster, filled: one line with gaps."""
    x, y = _with_gaps(outlines).T
    line = {"color": _colour(cluster), "width": 0.7}
    return go.Scatter(x=x, y=y, mode="lines", line=line, fill="toself", opacity=0.25, hoverinfo="skip")


def _with_gaps(outlines: Floats) -> NDArray[np.float32]:
    """Outlines one after another, nothing between them."""
    gap = np.full((len(outlines), 1, 2), np.nan)
    return np.concatenate([outlines, gap], axis=1).reshape(-1, 2).astype(np.float32)


def _colour(cluster: int) -> str:
    return SERIES[cluster % len(SERIES)]


@dataclass(frozen=True)
class Preferences:
    """The users of a domain as its company sees them: rows `mean` and, where there are distributions, `deviation`."""

    users: list[str]
    """Original ids of those the company has interactions of, in the order of the rows."""
    start: Rows
    """Before the first round."""
    chosen: Rows
    """After the chosen round."""


def preferences(run: Run) -> dict[str, Preferences]:
    """By domain, how its company sees its users. Empty where a method knows no distributions of users."""
    start, chosen = run.companies(start=True), run.companies()
    found = {}
    for domain, company in chosen.items():
        before, after = start[domain].users_as_rows(), company.users_as_rows()
        if before is not None and after is not None:
            known = np.flatnonzero(run.training_items(domain).lengths)
            ids = run.user_ids(domain)
            users = [ids[user] for user in known]
            found[domain] = Preferences(users, *({n: t[known] for n, t in rows.items()} for rows in (before, after)))
    return found


def preference_maps(run: Run) -> list[PreferenceMap]:
    """Of every domain, some users before training and after the chosen round; without co-clustering only the latter.

    Users are drawn by their ids, so that a person who is drawn in one domain is, as far as possible, in the others too.
    Empty where a method knows no distributions of users.
    """
    config: Any = run.settings.config()
    maps = []
    for domain, seen in preferences(run).items():
        shown = some_users(seen.users)
        moments = {f"after round {run.summary['best_round']}": seen.chosen}
        if config.pull.clustering:
            moments = {"before training": seen.start, **moments}
        rows = {moment: {name: t[shown] for name, t in points.items()} for moment, points in moments.items()}
        users = [seen.users[user] for user in shown]
        maps.append(preference_map(domain, users, rows, config.pull.co_clustering))
    return maps


def some_users(users: list[str], most: int = MOST_USERS) -> Ints:
    """Numbers of at most so many of `users`, in ascending order: whose ids have the smallest hashes."""
    order = sorted(range(len(users)), key=lambda user: fingerprint("shown", users[user]))
    return np.sort(np.array(order[:most], dtype=np.int64))


def preference_map(
    domain: str, users: list[str], moments: Mapping[str, Rows], clustering: CoClustering, seed: int = 0
) -> PreferenceMap:
    """From (users, d) rows `mean` and, if any, `deviation`, at every moment."""
    return PreferenceMap(domain, users, {moment: cloud_of(rows, clustering, seed) for moment, rows in moments.items()})


def cloud_of(rows: Rows, clustering: CoClustering, seed: int = 0) -> Cloud:
    """The users of `rows` on their plane, and in clusters."""
    points = unnamed(rows).double()
    assignment = clustering.assign(points, Stream.of(seed, "clusters"), 0)
    cluster = by_size(assignment.argmax(dim=1).numpy())
    mean = rows["mean"].double().numpy()
    directions = main_directions(mean)
    covariances = None
    if "deviation" in rows:
        variance = rows["deviation"].double().numpy() ** 2
        covariances = np.einsum("id,nd,jd->nij", directions, variance, directions)
    places = (mean - mean.mean(axis=0)) @ directions.T
    return Cloud(places, covariances, cluster, compactness(points.numpy(), cluster))


def main_directions(mean: Floats) -> Floats:
    """(2, d) orthonormal: the first two principal components; what there is not, is 0."""
    found = np.linalg.svd(mean - mean.mean(axis=0), full_matrices=False)[2][:2]
    return np.concatenate([found, np.zeros((2 - len(found), mean.shape[1]))])


def by_size(labels: Ints) -> Ints:
    """The same clusters, numbered from the largest to the smallest; empty ones have no number."""
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    number = np.empty(len(sizes), dtype=np.int64)
    number[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return number[place]


def compactness(points: Floats, cluster: Ints) -> float:
    """Mean squared distance to the centre of the own cluster, relative to the mean over all pairs; 0 of equal points.

    With squared Wasserstein distances, as always where points are [μ ; σ].
    """
    members = np.eye(int(cluster.max()) + 1)[cluster]
    centres = members.T @ points / members.sum(axis=0)[:, None]
    within = ((points - centres[cluster]) ** 2).sum(axis=1).mean()
    around = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    pairs = 2 * around.sum() / max(len(points) - 1, 1)
    return float(within / pairs) if pairs else 0.0
