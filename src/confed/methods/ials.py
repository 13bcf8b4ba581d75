"""iALS: implicit matrix factorisation by alternating least squares (Hu, Koren and Volinsky 2008). The model is
`models/ials.py`.
"""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import ials
from confed.models.ials import IALSConfig, IALSModel


class IALS(CentralMethod):
    name = "ials"
    title = "iALS: implicit alternating least squares"
    citation = "Hu, Koren and Volinsky, Collaborative Filtering for Implicit Feedback Datasets, ICDM 2008"
    about = ials.__doc__
    config_class = IALSConfig
    rounds = 1

    def model(self, config: IALSConfig, data: TrainingData, seed: int, dtype: str) -> IALSModel:
        return IALSModel(config, data, seed, dtype)
