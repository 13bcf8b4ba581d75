"""What is said of a run when it has ended."""

from __future__ import annotations

from typing import Any

from confed.data.interactions import ONLY
from confed.data.shares import AnySplit
from confed.evaluation.evaluator import PARTS
from confed.methods.published import published
from confed.privacy.accounting import accounted
from confed.protocol import View
from confed.runs.checkpoint import Progress
from confed.runs.everybody import rank_everybody, with_everybody
from confed.runs.folder import RunFolder
from confed.runs.log import Line
from confed.runs.memory import peak_rss_mb
from confed.runs.prepare import Experiment
from confed.runs.settings import defaults_in_words
from confed.runs.verdict import YARDSTICK, pace
from confed.runs.yardstick import popularity


def summarise(experiment: Experiment, folder: RunFolder, progress: Progress, lines: list[Line]) -> dict[str, Any]:
    """The summary of a run: metrics in percent at the chosen round; seconds and bytes in total."""
    settings = experiment.settings
    best = next(line for line in lines if line["round"] == progress.best_round)
    views: dict[View, Any] = best["views"] or _unmeasured(experiment)
    if settings.eval_users:
        experiment = with_everybody(experiment)
        views = rank_everybody(experiment, folder, next(iter(views)), progress.best_round)
    totals = {
        name: sum(line[name] for line in lines)
        for name in ("seconds", "participants", "upload_bytes", "download_bytes")
    }
    view: View = next(iter(views))  # the one the method is judged by
    label = settings.protocol.label
    printed = experiment.method.published_as(experiment.terms.config)
    figures = published(printed, settings.known) if printed and settings.known and label == "paper" else []
    return {
        "method": settings.method,
        "dataset": settings.dataset,
        "protocol": label,
        "seed": settings.seed,
        "defaults": defaults_in_words(settings),
        "users": experiment.cut.users,
        "items": experiment.cut.items,
        "negatives": settings.protocol.negatives,
        **({"eval_users": settings.eval_users} if settings.eval_users else {}),
        "rounds": progress.round,
        "best_round": progress.best_round,
        "view": view,
        **views[view]["test"],
        "validation": views[view]["validation"],
        "views": {view: parts["test"] for view, parts in views.items()},
        "seconds": totals["seconds"],
        "seconds_per_round": totals["seconds"] / progress.round,
        "peak_rss_mb": peak_rss_mb(),
        "participations": totals["participants"],
        "upload_bytes": totals["upload_bytes"],
        "download_bytes": totals["download_bytes"],
        "upload_parts": experiment.method.upload_parts(experiment.terms, experiment.cut),
        **_of_the_noise(lines),
        **_of_the_release(experiment),
        **_of_the_cut(experiment.cut),
        **_of_the_yardstick(experiment, folder, view),
        "pace": pace(settings.method_options),
        "published": [vars(figure) for figure in figures],
        "run_dir": str(folder.path),
    }


def _of_the_noise(lines: list[Line]) -> dict[str, Any]:
    """By client, or of everybody: what was added, and what that promises of all rounds together."""
    notes = lines[-1].get("server", {}).get("noise", {})
    return {"noise": {who: accounted(note, len(lines)) for who, note in notes.items()}} if notes else {}


def _of_the_release(experiment: Experiment) -> dict[str, Any]:
    """What was given away before training, and what its noise promises."""
    found = experiment.method.released(experiment.terms.config, experiment.cut)
    return {"release": found} if found else {}


def _unmeasured(experiment: Experiment) -> dict[View, Any]:
    """The view of a run that held nothing out: as it would be, without a figure."""
    view = experiment.method.facts(experiment.terms.config, experiment.terms.view).get("view", "global")
    domains = [name for name in experiment.cut.parts if name != ONLY]
    return {view: {part: {"domains": {name: {} for name in domains}} if domains else {} for part in PARTS}}


def _of_the_yardstick(experiment: Experiment, folder: RunFolder, view: View) -> dict[str, Any]:
    """What popularity gets on the same test items; nothing of popularity itself, nor where nothing is held out."""
    if experiment.settings.method == YARDSTICK or not experiment.settings.protocol.measures:
        return {}
    return {YARDSTICK: popularity(experiment, folder.load_ranks(), view)}


def _of_the_cut(cut: AnySplit) -> dict[str, Any]:
    """What its figures cannot show: who is not in them, and what no method could know."""
    untrained = {name: part.untrained for name, part in cut.parts.items()}
    return {"untrained": untrained[ONLY]} if ONLY in untrained else {"left_out": cut.left_out, "untrained": untrained}
