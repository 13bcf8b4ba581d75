"""Methods that have all data in one place, of one domain or of several: what federation is compared with."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from confed.data.domain_split import DomainSplit
from confed.data.split import TrainingData
from confed.engines.base import Trainer
from confed.engines.domains import DomainTrainer
from confed.methods.base import Method
from confed.scoring import Card


class CentralMethod(Method):
    """A method that has the data of all users in one place: what federation is compared with."""

    kind = "central"
    discloses = "everything: all interactions are in one place"

    @abstractmethod
    def trainer(self, config: Any, data: TrainingData, seed: int, dtype: str) -> Trainer[Card]:
        """A fresh model of `data`."""


class JointMethod(Method):
    """A method that sees all domains' interactions at once."""

    kind = "central"
    discloses = "everything: all domains' interactions are in one place"

    @abstractmethod
    def trainer(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> DomainTrainer:
        """A fresh model of all domains."""
