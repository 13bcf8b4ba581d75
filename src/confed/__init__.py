"""confed: federated recommendation. Train and measure recommenders on data that stays with its owners."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Read when torch is loaded, which is later: after each of their tasks OpenMP's threads would spin for some time, on a
# core that whatever comes next needs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# And memory for the tables of a chunk of clients would come in pages of 4 KB, ten thousand a round.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

if TYPE_CHECKING:
    from confed.data.domains import Domains
    from confed.data.interactions import Interactions
    from confed.data.registry import load_dataset, load_domains
    from confed.errors import ConfedError
    from confed.runs.api import compare, resume, run
    from confed.runs.finished import Run
    from confed.runs.offers import Recommendation
    from confed.runs.recommender import Recommender

__version__ = "0.1.0"
__all__ = [
    "ConfedError",
    "Domains",
    "Interactions",
    "Recommendation",
    "Recommender",
    "Run",
    "compare",
    "load_dataset",
    "load_domains",
    "resume",
    "run",
]

_HOMES = {
    "ConfedError": "errors",
    "Domains": "data.domains",
    "Interactions": "data.interactions",
    "Recommendation": "runs.offers",
    "Recommender": "runs.recommender",
    "Run": "runs.finished",
    "compare": "runs.api",
    "load_dataset": "data.registry",
    "load_domains": "data.registry",
    "resume": "runs.api",
    "run": "runs.api",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: torch alone takes seconds, and `confed --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'confed' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"confed.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
