"""The terms of local objectives."""

from confed.clients.objectives.base import Batch, Term
from confed.clients.objectives.bce import BCE, SaturatingBCE

__all__ = ["BCE", "Batch", "SaturatingBCE", "Term"]
