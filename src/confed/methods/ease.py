"""EASE: the shallow autoencoder with a closed form (Steck 2019). The model is `models/ease.py`."""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import ease
from confed.models.ease import EASEConfig, EASEModel


class EASE(CentralMethod):
    name = "ease"
    title = "EASE: embarrassingly shallow autoencoder"
    citation = "Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019"
    about = ease.__doc__
    config_class = EASEConfig
    rounds = 1

    def model(self, config: EASEConfig, data: TrainingData, seed: int, dtype: str) -> EASEModel:
        return EASEModel(config, data, seed, dtype)
