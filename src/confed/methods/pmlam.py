"""PMLAM: users and items as Gaussians, ranked by triplets with learnt margins (Ma et al. 2020). The model is
`models/pmlam.py`.
"""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import pmlam
from confed.models.pmlam import PMLAMConfig, PMLAMModel


class PMLAM(CentralMethod):
    name = "pmlam"
    title = "PMLAM: probabilistic metric learning with adaptive margins"
    citation = "Ma et al., Probabilistic Metric Learning with Adaptive Margin for Top-K Recommendation, KDD 2020"
    about = pmlam.__doc__
    config_class = PMLAMConfig

    def model(self, config: PMLAMConfig, data: TrainingData, seed: int, dtype: str) -> PMLAMModel:
        return PMLAMModel(config, data, seed, dtype)
