"""CDRIB: graph encoders of two domains with a bottleneck between (Cao et al. 2022); its model: `models/cdrib.py`."""

from __future__ import annotations

from typing import Any, ClassVar

from confed.data.domain_split import DomainSplit
from confed.methods.central import JointMethod
from confed.models import cdrib
from confed.models.cdrib import CDRIBConfig, CDRIBModel


class CDRIB(JointMethod):
    name = "cdrib"
    title = "CDRIB: graph encoders of two domains with a bottleneck between them"
    citation = (
        "Cao et al., Cross-Domain Recommendation to Cold-Start Users via Variational Information Bottleneck, ICDE 2022"
    )
    about = cdrib.__doc__
    config_class = CDRIBConfig
    most_domains: ClassVar[int | None] = 2

    def model(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> CDRIBModel:
        return CDRIBModel(config, cut, seed, dtype)
