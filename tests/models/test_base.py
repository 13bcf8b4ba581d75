import numpy as np
import pytest
import torch

from confed import scoring
from confed.data.interactions import ONLY
from confed.data.split import TrainingData
from confed.initial import initial, normal
from confed.models import base
from confed.models.base import EpochModel, OneShotModel, PointwiseConfig, PointwiseModel
from confed.models.trainer import OnePlace
from confed.ragged import Ragged
from confed.testing import Recorder, assert_equal_states


def data(*rows, items=12):
    positives = Ragged.of(rows)
    return TrainingData(items, positives, positives.unique())


SMALL = data([0, 1, 2], [2, 3], [4, 5, 6, 7], [0, 8])


class Quadratic(EpochModel):
    """|x − 1|², one step an epoch, on a parameter whose first row never gets a gradient after epoch 1."""

    def __init__(self, seed=0):
        super().__init__(SMALL, seed, "float64", {"x": initial(seed, "x", (3, 2), normal(1.0))}, 0.1)

    def epoch(self, number):
        x = self.params["x"]
        x.grad = 2.0 * (x - 1.0)
        if number > 1:
            x.grad[0] = 0.0
        self.adam.step()
        return float((x - 1.0).square().sum())

    def scorer(self):
        return lambda clients: self.params["x"].sum().expand(len(clients), SMALL.items)


class Counter(OneShotModel):
    fits = 0

    def fit(self):
        self.fits += 1
        return {"scores": torch.arange(48.0).view(4, 12)}

    def scorer(self):
        return lambda clients: self.model["scores"][clients]


class Rows(PointwiseModel):
    """Keeps what it is asked to learn from."""

    def __init__(self, data, seed=0, **options):
        super().__init__(data, seed, "float64", {"x": torch.zeros(1)}, PointwiseConfig(**options))
        self.seen = []

    def epoch(self, number):
        self.seen += zip(*(rows.tolist() for rows in self.rows(number)), strict=True)
        return 0.0

    def scorer(self):
        raise NotImplementedError


def test_adam_is_torch_s_and_rows_without_gradient_keep_moving():
    model = Quadratic()
    x = model.params["x"].clone().requires_grad_()
    plain = torch.optim.Adam([x], lr=0.1, foreach=False)
    for number in (1, 2, 3):
        before = model.params["x"].clone()
        model.train(number)
        x.grad = 2.0 * (x.detach() - 1.0)
        if number > 1:
            x.grad[0] = 0.0
        plain.step()
        assert not torch.equal(before[0], model.params["x"][0])
    torch.testing.assert_close(model.params["x"], x.detach(), rtol=1e-12, atol=1e-12)


def test_three_epochs_are_one_a_load_and_two():
    straight = Quadratic()
    for number in (1, 2, 3):
        straight.train(number)
    first = Quadratic()
    first.train(1)
    state = {name: value.clone() for name, value in first.state().items()}
    resumed = Quadratic(seed=9)
    resumed.load(state)
    resumed.train(2)
    resumed.train(3)
    assert_equal_states(straight.state(), resumed.state(), tolerance=0)


def test_the_state_before_the_first_epoch_is_complete():
    fresh, other = Quadratic(seed=1), Quadratic(seed=2)
    names = {"param.x", "adam.step.x", "adam.exp_avg.x", "adam.exp_avg_sq.x"}
    assert set(fresh.state()) == names
    other.load({name: value.clone() for name, value in fresh.state().items()})
    fresh.train(1)
    other.train(1)
    assert_equal_states(fresh.state(), other.state(), tolerance=0)
    assert set(fresh.state()) == names


def test_loading_does_not_tie_the_model_to_the_state():
    model = Quadratic()
    model.train(1)
    state = {name: value.clone() for name, value in model.state().items()}
    kept = {name: value.clone() for name, value in state.items()}
    model.load(state)
    model.train(2)
    assert_equal_states(state, kept, tolerance=0)


def test_one_shot_models_are_fitted_once():
    model = Counter(SMALL, 0, "float32")
    assert model.state() == {}
    assert [model.train(number) for number in (1, 2)] == [None, None]
    assert model.fits == 1
    loaded = Counter(SMALL, 0, "float32")
    loaded.load(model.state())
    loaded.train(2)
    assert loaded.fits == 0


@pytest.mark.parametrize("values", [1, 30, 1 << 22])
def test_scores_arrive_in_chunks_that_do_not_matter(monkeypatch, values):
    monkeypatch.setattr(scoring, "_SCORE_VALUES", values)
    sizes = []

    class Spied(Counter):
        def scorer(self):
            whole = super().scorer()

            def score(clients):
                sizes.append(len(clients))
                return whole(clients)

            return score

    recorder = Recorder(4, 12)
    OnePlace({ONLY: Spied(SMALL, 0, "float32")}, {ONLY: recorder}).round(1, ["global"])
    assert torch.equal(recorder.scores, torch.arange(48.0, dtype=torch.float64).view(4, 12))
    assert max(sizes) * SMALL.items <= max(values, SMALL.items)


def test_a_pointwise_epoch_has_every_positive_and_q_distinct_negatives_for_each():
    model = Rows(SMALL, train_negatives=3)
    model.train(1)
    positives = sorted((user, item) for user, item, label in model.seen if label == 1.0)
    assert positives == sorted(zip(SMALL.positives.row_of.tolist(), SMALL.positives.values.tolist(), strict=True))
    negatives = [(user, item) for user, item, label in model.seen if label == 0.0]
    assert len(negatives) == 3 * len(positives)
    assert not set(negatives) & set(positives)


def test_rows_are_redrawn_and_reshuffled_every_epoch():
    model = Rows(SMALL)
    first, again, second = model.rows(1), model.rows(1), model.rows(2)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert not torch.equal(first[1], second[1])
    assert not torch.equal(first[0], second[0])


def test_the_protocol_s_excluded_items_are_never_negatives():
    everything_but_eleven = Ragged.of([list(range(11))] * 4)
    leaky = TrainingData(SMALL.items, SMALL.positives, everything_but_eleven)
    model = Rows(leaky, train_negatives=1)
    _, items, labels = model.rows(1)
    assert set(items[labels == 0].tolist()) == {11}


def test_the_interaction_matrix_counts_repeated_pairs_once():
    matrix = base.interaction_matrix(data([3, 1, 3], [0]), torch.float32)
    assert matrix.dtype == np.float32
    expected = np.zeros((2, 12))
    expected[0, [1, 3]] = expected[1, 0] = 1.0
    assert np.array_equal(matrix.toarray(), expected)
