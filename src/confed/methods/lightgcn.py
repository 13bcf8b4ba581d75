"""LightGCN: embeddings smoothed over the user-item graph, ranked by BPR (He et al. 2020). The model is
`models/lightgcn.py`.
"""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import lightgcn
from confed.models.lightgcn import LightGCNConfig, LightGCNModel


class LightGCN(CentralMethod):
    name = "lightgcn"
    title = "LightGCN: light graph convolution"
    citation = "He et al., LightGCN: Simplifying and Powering Graph Convolution Network, SIGIR 2020"
    about = lightgcn.__doc__
    config_class = LightGCNConfig
    rounds = 1000  # as in the official code; on MovieLens-100K little is gained after 500

    def negatives(self, config: LightGCNConfig) -> int:
        return 1

    def model(self, config: LightGCNConfig, data: TrainingData, seed: int, dtype: str) -> LightGCNModel:
        return LightGCNModel(config, data, seed, dtype)
