"""What there is to see where clients score with two tables, or in two ways: what all share, and what is their own."""

from __future__ import annotations

from confed.analysis.clients import drift, has_two_tables, two_scores
from confed.analysis.correlation import feature_correlation
from confed.analysis.degradation import degradation as degradation_of
from confed.analysis.overlap import view_overlap
from confed.analysis.run import Run
from confed.report.section import Picture, Section

_SHOWN_CLIENT = 22
"""Whose features are shown; the paper shows client 22, for no reason it gives."""


def overlap(run: Run) -> Section | None:
    scores = two_scores(run)
    if scores is None:
        return None
    text = (
        f"Every client's ranking by what all share against its ranking by what is its own, round "
        f"{run.summary['best_round']}: 0 where they have nothing in common, 1 where both are the same."
    )
    return Section("Two views of the items", text, [Picture.of(view_overlap(scores))])


def correlation(run: Run) -> Section | None:
    client = min(_SHOWN_CLIENT, run.summary["users"] - 1)
    replay = run.replay([client])
    tables = replay.two_tables() if replay else None
    if tables is None:
        return None
    found = feature_correlation(tables[0][0], tables[1][0], client)
    text = "Products of features over all items; where nothing has a colour, the tables are orthogonal."
    return Section("What the two views have in common", text, [Picture.of(found)])


def degradation(run: Run) -> Section | None:
    distance = drift(run) if has_two_tables(run) else None
    if distance is None:
        return None
    found = degradation_of(distance.numpy(), run.training_items())
    text = (
        "How far one round of local training takes the shared table of every client from the consensus, against how "
        "unlike others the client is. Colour: the number of items it trained on, which moves a table as well."
    )
    return Section("Consensus degradation", text, [Picture.of(found)])
