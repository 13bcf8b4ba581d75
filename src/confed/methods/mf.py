"""MF: matrix factorisation of implicit feedback in one place (Koren et al. 2009). The model is `models/mf.py`."""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import mf
from confed.models.mf import MFConfig, MFModel


class MF(CentralMethod):
    name = "mf"
    title = "MF: matrix factorisation"
    citation = "Koren et al., Matrix Factorization Techniques for Recommender Systems, IEEE Computer 2009"
    about = mf.__doc__
    config_class = MFConfig

    def model(self, config: MFConfig, data: TrainingData, seed: int, dtype: str) -> MFModel:
        return MFModel(config, data, seed, dtype)
