"""How fast item tables are stepped on data that nobody tuned for.

A client steps the row of an item by lr · items · η / b, where b is the number of rows in its batch: its loss is the
batch's mean. Of that the server's mean over all clients leaves the share h of those who have the item. So in an epoch
an item moves by lr · items · η · h / b. Published code has η = 80, chosen on MovieLens. Where there are more items, and
many people have some of them, the same η moves these so far that a run is at its best in round 1, below popularity.

Where nobody says otherwise, η follows from two facts of the training data: the rows of a step, on average over clients,
and the share of the clients who have an interaction's item, on average over interactions. So the items that people
have move equally far whatever the catalogue; how far is a constant of the method (`ScaledItemsConfig.move`; with
η = 80 it is 112 an epoch on MovieLens-100K). docs/defaults.md has what was tried, and what it gave.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from confed.data.split import TrainingData

PAPERS = 80.0
"""η of the published code."""
AS_PUBLISHED = {"item_rate_factor": PAPERS}
"""The default on datasets for which papers print figures of a method."""


def facts_of(data: TrainingData, batch_size: int, negatives: int) -> dict[str, float]:
    """How many `items` there are, the `rows` of a step, and which share of the clients are `holders` of an item."""
    pairs = data.positives
    rows = np.minimum(pairs.lengths * (1 + negatives), batch_size)
    held_by = np.bincount(pairs.values, minlength=data.items) / data.users
    return {"items": float(data.items), "rows": _short(rows.mean()), "holders": _short(held_by[pairs.values].mean())}


def item_rate_factor(facts: Mapping[str, float], move: float) -> float:
    """The η for which items · η · h / b is `move`; to two digits: which items are held out should not show in it."""
    return float(f"{move * facts['rows'] / (facts['items'] * facts['holders']):.2g}")


def in_words(facts: Mapping[str, float]) -> str:
    """A line for the user."""
    held = f"one is had by {100 * facts['holders']:.2g} % of the users (popular items count more in this mean)"
    return f"a training step has {facts['rows']:.0f} rows, and of the {facts['items']:.0f} items {held}"


def _short(value: float) -> float:
    return float(f"{value:.4g}")
