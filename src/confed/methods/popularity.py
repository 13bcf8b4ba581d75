"""Popularity: every user gets the items that most users have. The line that anything learnt has to pass; the
model is `models/popularity.py`.
"""

from __future__ import annotations

from confed.data.split import TrainingData
from confed.methods.central import CentralMethod
from confed.models import popularity
from confed.models.popularity import PopularityConfig, PopularityModel


class Popularity(CentralMethod):
    name = "popularity"
    title = "Popularity: the same ranking for everybody"
    citation = "A reference line: not a published method"
    about = popularity.__doc__
    config_class = PopularityConfig
    rounds = 1

    def model(self, config: PopularityConfig, data: TrainingData, seed: int, dtype: str) -> PopularityModel:
        return PopularityModel(data, seed, dtype)
