"""How a run went: quality round by round, and what it cost."""

from __future__ import annotations

from collections.abc import Callable

from confed.analysis.curves import learning_curves, loss_curve, seconds_curve, traffic
from confed.analysis.rounds import Curves, Levels
from confed.analysis.run import Run
from confed.methods.registry import method_named
from confed.report.section import Fold, Picture, Section
from confed.vocabulary import Metric, view_in_words

_METRICS = ("hr@10", "ndcg@10")
POPULARITY = "popularity on test items"
_TRAVELS = "whole tables as they travel"
_TRAVELS_BETWEEN_COMPANIES = "rows about people whom several companies know; a client is a company"


def learning(run: Run) -> Section:
    history = run.lines

    def curves(metric: str, part: str) -> Curves:
        level = run.summary.get("popularity", {}).get(metric)
        levels = None if level is None else Levels(POPULARITY, {"": level})
        return learning_curves(history, metric, part, chosen=run.summary["best_round"], levels=levels)

    measured = run.settings.protocol.measures
    pictures = quality(curves, "validation") if measured else []
    if any(line["loss"] is not None for line in history) and not noted(run, "losses"):
        pictures.append(Picture.of(loss_curve(history)))
    if not measured:
        return Section("Learning curves", "Nothing was held out, so nothing was measured but the loss.", pictures)
    return Section("Learning curves", f"{_ranked(run)} {_choice(run)}", pictures, on_test_items(curves))


def quality(curves: Callable[[str, str], Curves], part: str) -> list[Picture]:
    """A picture of every metric, on validation or on test items."""
    return [Picture.of(curves(metric, part)) for metric in _METRICS]


def on_test_items(curves: Callable[[str, str], Curves]) -> Fold:
    """Not in plain sight: who looks at these to choose a round has no test left."""
    text = "To report, not to choose by: a round, or a setting, chosen by these would look better than it is."
    return Fold("The same on test items", text, quality(curves, "test"))


def _ranked(run: Run) -> str:
    against = Metric.named(_METRICS[0]).against(run.summary["negatives"])
    return f"In percent, against {against}{', means over domains' if run.domains else ''}."


def _choice(run: Run) -> str:
    """By what the round was chosen."""
    protocol = run.settings.protocol
    metric = Metric.named(protocol.select_metric).short
    view = run.summary["view"]
    meaning = view_in_words(view, has_clients=method_named(run.settings.method).has_clients)
    return f"The round was chosen by {metric} on {protocol.select_on} items in the view {view}, {meaning}."


def noted(run: Run, name: str) -> bool:
    """Whether the server's notes have this."""
    return name in run.lines[0].get("server", {})


def costs(run: Run) -> Section:
    history = run.lines
    pictures = [Picture.of(seconds_curve(history))]
    text = f"{run.summary['seconds']:.0f} seconds in all, peak memory {run.summary['peak_rss_mb']:.0f} MB."
    if run.summary["upload_bytes"]:
        travelled = traffic(history)
        pictures.append(Picture.of(travelled))
        beside = "" if travelled.saved is None else ", beside what the server's mean to everybody would weigh"
        text += f" Traffic counts {_TRAVELS_BETWEEN_COMPANIES if run.domains else _TRAVELS}{beside}."
    return Section("Time and traffic", text, pictures)
