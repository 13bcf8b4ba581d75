"""PriCDR: a noisy release of the other domain's rows (Chen et al. 2022); its model: `models/pricdr.py`."""

from __future__ import annotations

from typing import Any, ClassVar

from confed.data.domain_split import DomainSplit
from confed.data.shares import AnySplit
from confed.methods.base import Terms
from confed.methods.central import JointMethod
from confed.models import pricdr
from confed.models.pricdr import PriCDRConfig, PriCDRModel
from confed.privacy.projection import Projection


class PriCDR(JointMethod):
    name = "pricdr"
    title = "PriCDR: each domain learns with a noisy release of the other's rows"
    citation = (
        "Chen et al., Differential Private Knowledge Transfer for Privacy-Preserving Cross-Domain Recommendation, "
        "WWW 2022"
    )
    about = pricdr.__doc__
    config_class = PriCDRConfig
    rounds = 300
    most_domains: ClassVar[int | None] = 2
    discloses = (
        "to the other domain, once, the rows of the people both have, projected and blurred (the summary says with "
        "what ε), and who these people are. It is simulated in one place, where nothing keeps the domains apart"
    )

    def model(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> PriCDRModel:
        return PriCDRModel(config, cut, seed, dtype)

    def released(self, config: Any, cut: AnySplit) -> dict[str, Any]:
        assert cut.matching is not None, "for several domains"
        people = cut.matching.people
        projection: Projection = config.projection(people)
        return projection.promise() if people else {}

    def check(self, terms: Terms, cut: AnySplit) -> None:
        """Also that somebody can say what the release promises, before anything is trained."""
        super().check(terms, cut)
        self.released(terms.config, cut)
