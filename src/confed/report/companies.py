"""What there is to see of companies: their domains, the noise on what they send, and how they see their users."""

from __future__ import annotations

from confed.analysis.curves import clipped_shares, domain_curves, domain_losses, lengths_sent
from confed.analysis.preferences import preference_maps
from confed.analysis.rounds import Curves, Levels
from confed.analysis.run import Run
from confed.privacy.accounting import accounted, in_words
from confed.privacy.projection import in_words as in_words_of_release
from confed.report.section import Picture, Section
from confed.report.training import POPULARITY, noted, on_test_items, quality


def domains(run: Run) -> Section | None:
    if not run.domains:
        return None

    history = run.lines

    def curves(metric: str, part: str) -> Curves:
        popularity = run.summary.get("popularity", {}).get("domains", {})
        levels = Levels(POPULARITY, {name: of[metric] for name, of in popularity.items()}) if popularity else None
        chosen, view = run.summary["best_round"], run.summary["view"]
        return domain_curves(history, metric, view, part, chosen=chosen, levels=levels)

    pictures = quality(curves, "validation")
    if noted(run, "losses"):
        pictures.append(Picture.of(domain_losses(history)))
    text = "One round is chosen for all domains, by their mean; a domain alone might choose another."
    return Section("Every domain by itself", text, pictures, on_test_items(curves))


def noise(run: Run) -> Section | None:
    if not noted(run, "noise") or not run.domains:
        return None
    history = run.lines
    note = accounted(next(iter(history[0]["server"]["noise"].values())), len(history))
    text = (
        f"What a company says of a person is clipped to length {note['clip']:g}; then every number gets Gaussian noise "
        f"of deviation {note['noise_deviation']:g}. What that promises {in_words(note)}. Companies that know the same "
        f"person add up, and a person's interactions shape other people's rows as well."
    )
    pictures = [Picture.of(lengths_sent(history)), Picture.of(clipped_shares(history))]
    return Section("Noise on what companies send", text, pictures)


def release(run: Run) -> Section | None:
    if "release" not in run.summary:
        return None
    text = (
        f"Before training, once: the rows of the people both have, as {in_words_of_release(run.summary['release'])}. "
        "One interaction is one entry of these rows; a person with many is hidden less."
    )
    return Section("What the domains gave each other", text, [])


def preferences(run: Run) -> Section | None:
    maps = preference_maps(run)
    if not maps:
        return None
    text = (
        "Some users of every domain on the plane of the two main directions of their means. An ellipse is one standard "
        "deviation of a user's preferences, unless the picture says less; a colour is a cluster that co-clustering "
        "finds among the users shown, on every picture anew. Compactness is the mean squared distance to the centre of "
        "the own cluster relative to that of all pairs: small is compact. Training by itself makes users of a kind "
        "alike: what co-clustering adds is seen against a run without."
    )
    return Section(
        "How the companies see their users",
        text,
        [Picture(each.figure(moment), each.said(moment)) for each in maps for moment in each.clouds],
    )
