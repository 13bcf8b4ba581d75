import numpy as np
import pytest
import torch

from confed.data.registry import load_dataset
from confed.data.split import TrainingData, split
from confed.evaluation.domains import Examination
from confed.methods.base import Terms
from confed.methods.popularity import Popularity
from confed.protocol import PAPER, STRICT
from confed.ragged import Ragged
from tests.models.scores import scores_of
from tests.realdata import require


def scores(rows, items):
    positives = Ragged.of(rows)
    method = Popularity()
    data = TrainingData(items, positives, positives.unique())
    model = method.model(method.config("tiny", {}), data, 0, "float32")
    model.train(1)
    return scores_of(model)


def test_by_hand():
    """Counts 3, 1, 0, 2 of 6: shares 3.5/8, 1.5/8, 0.5/8, 2.5/8; everybody gets the same."""
    found = scores([[0, 1], [0, 3], [0, 3]], items=4)
    shares = torch.tensor([3.5, 1.5, 0.5, 2.5], dtype=torch.float64) / 8.0
    torch.testing.assert_close(found, torch.logit(shares).expand(3, 4), rtol=1e-6, atol=1e-6)


def test_repeated_pairs_count_as_often_as_they_occur():
    found = scores([[0, 0, 0, 0], [1], [1, 2]], items=3)[0]
    assert found.argsort(descending=True).tolist() == [0, 1, 2]


def test_large_counts_keep_their_order_as_float32_probabilities():
    found = scores([list(range(item, 50)) for item in range(50) for _ in range(20)], items=50)
    probability = torch.sigmoid(found[0].float())
    assert bool((probability.diff() > 0).all())


@pytest.mark.parametrize("protocol", [PAPER, STRICT], ids=lambda protocol: protocol.name)
def test_reference_line_on_movielens(protocol):
    """decisions.md "Checks": 41.5 / 23.0 for one draw of ties and candidates; other draws differ by a point."""
    data = load_dataset(require("ml-100k"))
    found = []
    for seed in range(4):
        cut = split(data, protocol, seed)
        examination = Examination.of(cut, protocol, seed)
        done = Popularity().trainer(Terms(None, seed), cut, examination.judges).round(1, ["global"])
        metrics = examination.grading.result(done.tallies["global"]).metrics("test")
        found.append((metrics["hr@10"], metrics["ndcg@10"]))
    np.testing.assert_allclose(np.mean(found, axis=0), (41.5, 23.0), atol=1.5)
