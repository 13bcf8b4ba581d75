"""The terms of local objectives."""

from confed.clients.objectives.base import Batch, Term
from confed.clients.objectives.bce import BCE, SaturatingBCE
from confed.clients.objectives.dense import DenseTerm, Schedule, Whole
from confed.clients.objectives.similarity import ItemSimilarity
from confed.clients.objectives.supcon import SupCon

__all__ = ["BCE", "Batch", "DenseTerm", "ItemSimilarity", "SaturatingBCE", "Schedule", "SupCon", "Term", "Whole"]
