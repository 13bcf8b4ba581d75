"""Several seeds of one run as one summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def pool(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summaries of one method over seeds as one: means in place of numbers, with `mean`, `std` and `runs` added."""
    first = dict(summaries[0])
    if len(summaries) == 1:
        return first
    mean = _over_seeds(summaries, lambda values: float(np.mean(values)))
    std = _over_seeds(summaries, lambda values: float(np.std(values, ddof=1)))
    seeds = [summary["seed"] for summary in summaries]
    shares = {"untrained": _mean_share([s["untrained"] for s in summaries])} if "untrained" in first else {}
    runs = [dict(summary) for summary in summaries]
    return {**first, **mean, **shares, "seeds": seeds, "mean": mean, "std": std, "runs": runs}


def _mean_share(shares: Sequence[Any]) -> Any:
    """Of one domain, or of each of several."""
    if isinstance(shares[0], Mapping):
        return {domain: _mean_share([share[domain] for share in shares]) for domain in shares[0]}
    return float(np.mean(shares))


def _over_seeds(summaries: Sequence[Mapping[str, Any]], statistic: Callable[[list[float]], float]) -> dict[str, Any]:
    """The statistic of every measured number, also of those in the sections of views and validation."""
    pooled: dict[str, Any] = {}
    for name, value in summaries[0].items():
        if isinstance(value, Mapping):
            section = _over_seeds([summary[name] for summary in summaries], statistic)
            pooled |= {name: section} if section else {}
        elif "@" in name or name in _MEASURED:
            pooled[name] = statistic([summary[name] for summary in summaries])
    return pooled


_MEASURED = {"seconds", "seconds_per_round", "peak_rss_mb", "rounds", "best_round", "participations"}
_MEASURED |= {"upload_bytes", "download_bytes"}
