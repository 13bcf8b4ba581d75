"""Own data may be too small for what is usual: what is done about it, and said.

Of data of the catalogue, and of what somebody asks for, nothing is changed.
"""

from __future__ import annotations

from confed.data.catalogue import REGISTRY
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.shares import AnySplit
from confed.data.split import FEWEST_ITEMS, Split
from confed.errors import ConfedError, in_domain, said_of
from confed.evaluation.candidates import candidates_of_each
from confed.protocol import ALWAYS, protocol_named
from confed.runs.settings import Settings

AnyData = Interactions | Domains

_WHAT_FOR = "one to train with, one to choose the round and one to test"


def with_enough(data: AnyData, settings: Settings) -> tuple[AnyData, list[str]]:
    """Without users who have fewer items than the run asks for, or than a split needs.

    Where repeated pairs are dropped, distinct items count. Of several domains, the split itself leaves out in each whom
    it cannot cut.
    """
    distinct, asked = settings.protocol.dedupe, settings.min_interactions
    if asked or isinstance(data, Domains) or not settings.protocol.measures:
        return data.keep_users(asked or 1, distinct=distinct), []
    try:
        kept = data.keep_users(FEWEST_ITEMS, distinct=distinct)
    except ConfedError:
        raise ConfedError(
            f"{settings.dataset}: nobody has {FEWEST_ITEMS} items, {_WHAT_FOR}: bring more of their data, or "
            f"{_unmeasured(settings)}"
        ) from None
    gone = data.n_users - kept.n_users
    if not gone or settings.known in REGISTRY:  # whose filter is part of what the dataset is
        return kept, []
    return kept, [
        f"{gone:,} of {data.n_users:,} users are left out, who have fewer than {FEWEST_ITEMS} items: {_WHAT_FOR}"
    ]


def with_candidates(settings: Settings, cut: AnySplit) -> tuple[Settings, list[str]]:
    """With as many sampled candidates as there are for everybody, where these are fewer than the protocol's own."""
    protocol = settings.protocol
    asked = protocol.negatives != protocol_named(protocol.name).negatives
    if asked or protocol.held_out != "last items":
        return settings, []
    most = min(_most(domain, part, settings) for domain, part in cut.parts.items() if isinstance(part, Split))
    if most >= protocol.negatives:
        return settings, []
    fitted = {"negatives": most, "cutoffs": tuple(k for k in protocol.cutoffs if k <= 1 + most)}
    fewer = {"protocol": protocol.model_copy(update=fitted), "fitted": tuple(fitted)}
    return settings.model_copy(update=fewer), [
        f"SMALL DATA: test items are ranked against {most} sampled candidates instead of {protocol.negatives}, as many "
        f"as there are for everybody. The full ranking, against all items, says more here"
    ]


def _most(domain: str, part: Split, settings: Settings) -> int:
    """At K = 10, which every summary has, a list of fewer than ten would count everybody as a hit."""
    candidates = candidates_of_each(part, settings.protocol)
    few = int((candidates < ALWAYS - 1).sum())
    if not few:
        return int(candidates.min())
    with said_of(settings.dataset), in_domain(domain):
        raise ConfedError(
            f"too small to measure on: there are {part.items:,} items, and {few:,} of {part.users:,} users have so "
            f"many of them that fewer than {ALWAYS - 1} are left to rank a held-out one against. Bring more items, "
            f"leave these users out, or {_unmeasured(settings)}"
        )


def _unmeasured(settings: Settings) -> str:
    """The remedy for data on which nothing can be measured."""
    rounds = f" --rounds {settings.rounds}" if settings.rounds > 1 else ""
    command = f"`confed run {settings.method} {settings.dataset} --no-holdout{rounds}`"
    return f"train on all of it and measure nothing: {command}"
