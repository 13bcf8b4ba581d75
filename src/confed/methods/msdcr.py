"""MSDCR: common and specific aspects of two domains' histories (Zhao et al. 2022); its model: `models/msdcr.py`."""

from __future__ import annotations

from typing import Any, ClassVar

from confed.data.domain_split import DomainSplit
from confed.methods.central import JointMethod
from confed.models import msdcr
from confed.models.msdcr import MSDCRConfig, MSDCRModel


class MSDCR(JointMethod):
    name = "msdcr"
    title = "MSDCR: common and specific aspects of histories in two domains"
    citation = (
        "Zhao et al., Multi-Sparse-Domain Collaborative Recommendation via Enhanced Comprehensive Aspect "
        "Preference Learning, WSDM 2022"
    )
    about = msdcr.__doc__
    config_class = MSDCRConfig
    rounds = 50
    most_domains: ClassVar[int | None] = 2

    def model(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> MSDCRModel:
        return MSDCRModel(config, cut, seed, dtype)
