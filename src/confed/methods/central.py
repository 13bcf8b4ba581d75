"""Methods that have all data in one place, of one domain or of several: what federation is compared with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from confed.data.domain_split import DomainSplit
from confed.data.interactions import ONLY
from confed.data.shares import AnySplit
from confed.data.split import TrainingData
from confed.errors import in_domain
from confed.evaluation.judge import Judge
from confed.methods.base import Method, State, Terms
from confed.models.base import JointModel
from confed.models.trainer import OnePlace, of_domain
from confed.scoring import Scorer


class CentralMethod(Method):
    """A method that has the data of all users in one place; of several domains, each by itself."""

    kind = "central"
    domains: ClassVar[Literal["one", "several", "any"]] = "any"
    discloses = "everything: all interactions are in one place"

    @abstractmethod
    def model(self, config: Any, data: TrainingData, seed: int, dtype: str) -> JointModel:
        """A fresh model of `data`."""

    def trainer(self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge]) -> OnePlace:
        return OnePlace({domain: self._model(terms, cut, domain) for domain in cut.parts}, judges)

    def _model(self, terms: Terms, cut: AnySplit, domain: str) -> JointModel:
        with in_domain(domain):
            return self.model(terms.config, cut.parts[domain].training, terms.seed, terms.dtype)

    def scorer(self, terms: Terms, cut: AnySplit, state: State, number: int, domain: str = ONLY) -> Scorer:
        model = self._model(terms, cut, domain)
        model.load_serving(of_domain(state, domain))
        return model.scorer_of(domain)


class JointMethod(Method):
    """A method that sees all domains' interactions at once."""

    kind = "central"
    domains: ClassVar[Literal["one", "several", "any"]] = "several"
    discloses = "everything: all domains' interactions are in one place"

    @abstractmethod
    def model(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> JointModel:
        """A fresh model of all domains."""

    def trainer(self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge]) -> OnePlace:
        return OnePlace({ONLY: self._model(terms, cut)}, judges)

    def _model(self, terms: Terms, cut: AnySplit) -> JointModel:
        assert cut.matching is not None, "for several domains"
        return self.model(terms.config, cut, terms.seed, terms.dtype)

    def scorer(self, terms: Terms, cut: AnySplit, state: State, number: int, domain: str = ONLY) -> Scorer:
        model = self._model(terms, cut)
        model.load_serving(state)
        return model.scorer_of(domain)
