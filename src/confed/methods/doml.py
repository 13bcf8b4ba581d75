"""DOML: two domains in one place, with maps between their users (Li and Tuzhilin 2021); its model: `models/doml.py`."""

from __future__ import annotations

from typing import Any, ClassVar

from confed.data.domain_split import DomainSplit
from confed.methods.central import JointMethod
from confed.models import doml
from confed.models.doml import DOMLConfig, DOMLModel


class DOML(JointMethod):
    name = "doml"
    title = "DOML: two domains' networks with orthogonal maps between their users"
    citation = (
        "Li and Tuzhilin, Dual Metric Learning for Effective and Efficient Cross-Domain Recommendations, "
        "IEEE Transactions on Knowledge and Data Engineering, 2021"
    )
    about = doml.__doc__
    config_class = DOMLConfig
    most_domains: ClassVar[int | None] = 2

    def model(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> DOMLModel:
        return DOMLModel(config, cut, seed, dtype)
