"""What is said of a run that ends below popularity: that it does, and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from confed.protocol import ALWAYS

YARDSTICK = "popularity"
COMPARED = (f"hr@{ALWAYS}", f"ndcg@{ALWAYS}")
_CLEAR = 2.0
"""Standard errors by which the hit rate alone has to be lower."""
_EARLY, _LATE = 0.1, 0.9
"""Shares of the rounds: a run that is best before the one went too fast, after the other it was still learning."""
_FASTER, _SLOWER = 3.0, 10.0
_SURE = "ease"
"""If it is below popularity as well, there is little to learn."""
_PACES = ("item_rate_factor", "item_rate", "learning_rate")
"""Options that say how fast a method learns; of those it has, the first says most."""


def pace(options: Mapping[str, Any]) -> dict[str, float]:
    """The option that says how fast a method learns, if it has one."""
    said = {name: float(options[name]) for name in _PACES if options.get(name) is not None}
    return dict(list(said.items())[:1])


def is_below(summary: Mapping[str, Any]) -> bool:
    """Whether hits and ranks are both worse than popularity's, or hits alone by more than chance would have it."""
    if YARDSTICK not in summary:  # popularity itself, or a run from before there was a yardstick
        return False
    line = summary[YARDSTICK]
    hits, ranks = (float(line[metric] - summary[metric]) for metric in COMPARED)
    return min(hits, ranks) > 0 or hits > _CLEAR * float(line["error"][COMPARED[0]])


def verdict(summary: Mapping[str, Any]) -> Iterator[str]:
    """Of a run that ends below popularity: that it does, and what to try. Of any other, nothing."""
    if is_below(summary):
        yield _below(summary)
        remedies = list(_remedies(summary))
        if remedies:
            yield f"what to try: {'; '.join(remedies)}"


def _below(summary: Mapping[str, Any]) -> str:
    line = summary[YARDSTICK]
    shown = ", ".join(f"{name.upper()} {summary[name]:.2f} against {line[name]:.2f}" for name in COMPARED)
    errors = " and ".join(f"{line['error'][name]:.2f}" for name in COMPARED)
    return f"{summary['method']} ends below popularity: {shown} (standard errors of the difference: {errors})"


def _remedies(summary: Mapping[str, Any]) -> Iterator[str]:
    """By when the run was at its best; another view of the same round; a method that has no pace to get wrong."""
    best, rounds = summary["best_round"], summary["rounds"]
    early, late = (rounds > 1 and when for when in (best <= max(1, _EARLY * rounds), best > _LATE * rounds))
    if late:
        yield f"more rounds, as it was still learning (--rounds {2 * rounds:.0f})"
    for option, value in summary["pace"].items():
        if late:
            yield f"larger steps (--set {option}={_two_digits(_FASTER * value)})"
        if early:
            smaller = f"--set {option}={_two_digits(value / _SLOWER)}"
            yield f"smaller steps, as it was best in round {best:.0f} of {rounds:.0f} ({smaller})"
    for view, values in summary["views"].items():
        if all(values[metric] > summary[YARDSTICK][metric] for metric in COMPARED):
            yield f"the {view} view, which is above it (--set view={view})"
    if summary["method"] != _SURE:
        yield f"a closed form, such as {_SURE}"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"
