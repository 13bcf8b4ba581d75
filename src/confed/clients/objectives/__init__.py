"""The terms of local objectives."""

from confed.clients.objectives.base import Batch, Term
from confed.clients.objectives.bce import BCE, SaturatingBCE
from confed.clients.objectives.dense import DenseTerm, Schedule, Whole
from confed.clients.objectives.near import Near
from confed.clients.objectives.similarity import ItemSimilarity
from confed.clients.objectives.supcon import SupCon

__all__ = [
    "BCE",
    "Batch",
    "DenseTerm",
    "ItemSimilarity",
    "Near",
    "SaturatingBCE",
    "Schedule",
    "SupCon",
    "Term",
    "Whole",
]
