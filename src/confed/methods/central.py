"""Methods that have all data in one place, of one domain or of several: what federation is compared with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from torch import Tensor

from confed.data.domain_split import DomainSplit
from confed.data.interactions import ONLY
from confed.data.shares import AnySplit
from confed.data.split import TrainingData
from confed.errors import in_domain
from confed.evaluation.judge import Judge
from confed.methods.base import Method, State, Terms
from confed.models.base import JointModel, Model
from confed.models.trainer import OnePlace, of_domain
from confed.ragged import Ragged
from confed.scoring import Scorer


class CentralMethod(Method):
    """A method that has the data of all users in one place; of several domains, each by itself."""

    kind = "central"
    domains: ClassVar[Literal["one", "several", "any"]] = "any"
    discloses = "everything: all interactions are in one place"

    @abstractmethod
    def model(self, config: Any, data: TrainingData, seed: int, dtype: str) -> Model:
        """A fresh model of `data`."""

    def trainer(self, terms: Terms, cut: AnySplit, judges: Mapping[str, Judge]) -> OnePlace:
        return OnePlace({domain: self._model(terms, cut, domain) for domain in cut.parts}, judges)

    def _model(self, terms: Terms, cut: AnySplit, domain: str) -> Model:
        with in_domain(domain):
            return self.model(terms.config, cut.parts[domain].training, terms.seed, terms.dtype)

    def _served(self, terms: Terms, cut: AnySplit, state: State, domain: str) -> Model:
        model = self._model(terms, cut, domain)
        model.load_serving(of_domain(state, domain))
        return model

    def scorer(self, terms: Terms, cut: AnySplit, state: State, number: int, domain: str = ONLY) -> Scorer:
        return self._served(terms, cut, state, domain).scorer()

    def newcomers(
        self, terms: Terms, cut: AnySplit, state: State, number: int, histories: Ragged, domain: str = ONLY
    ) -> Tensor:
        found = self._served(terms, cut, state, domain).newcomers(histories)
        return super().newcomers(terms, cut, state, number, histories) if found is None else found

    def item_vectors(self, terms: Terms, cut: AnySplit, state: State, domain: str = ONLY) -> Tensor:
        found = self._served(terms, cut, state, domain).item_vectors()
        return super().item_vectors(terms, cut, state) if found is None else found


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
