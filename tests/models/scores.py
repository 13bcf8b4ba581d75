"""Scores as an examination gets them."""

from confed.data.interactions import ONLY
from confed.scoring import fill
from confed.testing import Recorder


def scores_of(model):
    """(users, items) by the model as it stands, handed over some users after others."""
    recorder = Recorder(model.users, model.data.items)
    fill(recorder.scorecard(), model.scorer(), model.values_of(ONLY))
    return recorder.scores
