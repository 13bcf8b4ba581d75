import numpy as np
import pytest
import scipy.sparse
import torch

from confed.data.split import TrainingData
from confed.errors import ConfedError
from confed.methods.ease import EASE
from confed.models.ease import item_weights
from confed.ragged import Ragged
from confed.testing import tiny
from tests.models.scores import scores_of


def brute_force(X, regularisation):
    """Column j alone: ridge regression of item j on all other items."""
    items = X.shape[1]
    B = np.zeros((items, items))
    for j in range(items):
        others = [i for i in range(items) if i != j]
        gram = X[:, others].T @ X[:, others] + regularisation * np.eye(items - 1)
        B[others, j] = np.linalg.solve(gram, X[:, others].T @ X[:, j])
    return B


@pytest.mark.parametrize("regularisation", [0.5, 20.0])
def test_weights_solve_the_problem_with_a_zero_diagonal(regularisation):
    X = (np.random.default_rng(1).random((30, 11)) < 0.3).astype(np.float64)
    X[:, 4] = 0.0
    found = item_weights(scipy.sparse.csr_matrix(X), regularisation)
    np.testing.assert_allclose(found, brute_force(X, regularisation), atol=1e-10)
    assert np.array_equal(np.diag(found), np.zeros(11))


def test_scores_are_the_users_rows_times_the_weights():
    data = tiny.cut().training
    method = EASE()
    model = method.model(method.config("tiny", {"regularisation": 3.0}), data, 0, "float64")
    model.train(1)
    X = np.zeros((tiny.USERS, tiny.ITEMS))
    X[data.positives.row_of, data.positives.values] = 1.0
    np.testing.assert_allclose(scores_of(model).numpy(), X @ brute_force(X, 3.0), atol=1e-9)


def test_single_precision_is_kept():
    model = EASE().model(EASE().config("tiny", {}), tiny.cut().training, 0, "float32")
    model.train(1)
    assert model.state()["weights"].dtype == torch.float32
    assert model.scorer()(torch.arange(2)).dtype == torch.float32


def test_a_catalogue_that_does_not_fit_is_refused_before_anything_is_computed():
    positives = Ragged.of([[0, 1], [2]])
    with pytest.raises(ConfedError, match=r"200,000 items would take 320 GB.*ials"):
        EASE().model(EASE().config("tiny", {}), TrainingData(200_000, positives, positives), 0, "float32")


def test_a_newcomer_is_scored_as_a_user_with_the_same_items():
    method, data = EASE(), tiny.cut().training
    model = method.model(method.config("tiny", {}), data, 0, "float64")
    model.train(1)
    torch.testing.assert_close(
        model.newcomers(data.positives.take(np.array([2, 5]))), model.scorer()(torch.tensor([2, 5]))
    )
