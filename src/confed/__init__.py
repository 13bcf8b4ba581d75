"""confed: federated recommendation. Train and measure recommenders on data that stays with its owners."""

from confed.data import Domains, Interactions, load_dataset, load_domains
from confed.errors import ConfedError
from confed.runs.api import Recommender, compare, resume, run
from confed.runs.finished import Recommendation, Run

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
