"""Methods that have the data of several domains in one place: what federation between companies is compared with."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from confed.data.domain_split import DomainSplit
from confed.engines.domains import DomainTrainer
from confed.methods.base import Method


class JointMethod(Method):
    """A method that sees all domains' interactions at once."""

    kind = "central"
    discloses = "everything: all domains' interactions are in one place"

    @abstractmethod
    def trainer(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> DomainTrainer:
        """A fresh model of all domains."""
