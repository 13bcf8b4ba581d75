"""NeuMF: neural collaborative filtering in one place (He et al. 2017). The model is `models/neumf.py`."""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import neumf
from confed.models.neumf import NeuMFConfig, NeuMFModel


class NeuMF(CentralMethod):
    name = "neumf"
    title = "NeuMF: neural matrix factorisation"
    citation = "He et al., Neural Collaborative Filtering, WWW 2017"
    about = neumf.__doc__
    config_class = NeuMFConfig

    def model(self, config: NeuMFConfig, data: TrainingData, seed: int, dtype: str) -> NeuMFModel:
        return NeuMFModel(config, data, seed, dtype)
