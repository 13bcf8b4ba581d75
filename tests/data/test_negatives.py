import numpy as np
import pytest

from confed.data.negatives import check_negative_pool, draw_negatives
from confed.data.split import TrainingData
from confed.errors import ConfedError
from confed.ragged import Ragged
from confed.random import Stream
from confed.testing.tiny import TINY_PAPER, cut


def test_pool_of_each_protocol():
    """Held-out items are drawn as negatives under `strict` and never under `paper`."""
    strict, paper = cut(), cut(TINY_PAPER)
    drawn = {}
    for name, some in (("strict", strict), ("paper", paper)):
        drawn[name] = {
            (c, i)
            for number in range(40)
            for c in range(24)
            for i in draw_negatives(some.training, np.array([c]), 4, Stream.of(0, "n", number)).reshape(-1).tolist()
        }
    assert all((c, int(strict.test[c])) in drawn["strict"] for c in range(24))
    assert not any((c, int(paper.test[c])) in drawn["paper"] for c in range(24))


def test_negatives_are_uniform_over_the_pool():
    data = TrainingData(12, Ragged.of([[0, 5]]), Ragged.of([[0, 5]]))
    items = np.concatenate(
        [draw_negatives(data, np.array([0]), 4, Stream.of(0, "n", n)).reshape(-1) for n in range(3000)]
    )
    counts = np.bincount(items, minlength=12)
    assert counts[[0, 5]].tolist() == [0, 0]
    others = np.delete(counts, [0, 5])
    assert ((others - others.mean()) ** 2 / others.mean()).sum() < 27.9  # 99.9 % quantile, 9 degrees of freedom


def test_a_pool_too_small_is_an_error():
    data = TrainingData(6, Ragged.of([[0, 1, 2]]), Ragged.of([[0, 1, 2]]))
    check_negative_pool(data, 3)
    with pytest.raises(ConfedError, match=r"1 of 1 users .* the 6 items that fewer than 4 .*\"train_negatives\": 3"):
        check_negative_pool(data, 4)
    full = TrainingData(3, data.positives, data.excluded)
    check_negative_pool(full, 0)
    with pytest.raises(ConfedError, match=r"training negatives: leave these users out"):
        check_negative_pool(full, 1)
