import warnings

import implicit.utils
import numpy as np
import torch

from confed.data.split import TrainingData
from confed.methods.ials import IALS
from confed.ragged import Ragged
from confed.testing import tiny

OPTIONS = {"factors": 4, "regularisation": 1.0, "alpha": 4.0, "iterations": 20}


def fitted(data, seed=0, dtype="float64", **options):
    method = IALS()
    model = method.model(method.config("tiny", {**OPTIONS, **options}), data, seed, dtype)
    model.train(1)
    return model


def test_it_ranks_a_planted_block_structure():
    """Each user likes all but two items of its block; the two left out beat every item of the other blocks."""
    blocks, size = 3, 8
    rows = [
        [block * size + i for i in range(size) if i not in (user, (user + 1) % size)]
        for block in range(blocks)
        for user in range(size)
    ]
    positives = Ragged.of(rows)
    model = fitted(TrainingData(blocks * size, positives, positives))
    scores = model.scorer()(torch.arange(blocks * size))
    for user in range(blocks * size):
        block = user // size
        left_out = [block * size + user % size, block * size + (user + 1) % size]
        others = [i for i in range(blocks * size) if i // size != block]
        assert scores[user, left_out].min() > scores[user, others].max()


def test_the_solution_is_stationary_for_the_objective_in_the_docstring():
    """Given the items, each user vector solves its weighted ridge regression, up to the solver's tolerance."""
    data = tiny.cut().training
    model = fitted(data, iterations=300, factors=2).state()
    users, items = model["users"].numpy(), model["items"].numpy()
    for user in range(5):
        weight = np.ones(tiny.ITEMS)
        weight[data.positives[user]] = 4.0
        gram = (items * weight[:, None]).T @ items + 1.0 * np.eye(2)
        solution = np.linalg.solve(gram, 4.0 * items[data.positives[user]].sum(axis=0))
        np.testing.assert_allclose(users[user], solution, atol=1e-3)


def test_the_library_finds_nothing_to_warn_about(monkeypatch):
    monkeypatch.setattr(implicit.utils, "_checked_blas_config", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(tiny.cut().training)


def test_precision_follows_the_run():
    for dtype in ("float32", "float64"):
        state = fitted(tiny.cut().training, dtype=dtype).state()
        assert {value.dtype for value in state.values()} == {getattr(torch, dtype)}


def test_a_newcomer_solves_its_own_least_squares():
    """Against the minimum of the objective in the docstring, over one user's vector, by autograd."""
    data = tiny.cut().training
    model = fitted(data)
    history = Ragged.of([[3, 7, 11, 30]])
    items = model.model["items"]
    weight = torch.ones(data.items, dtype=torch.float64)
    target = torch.zeros_like(weight)
    weight[history[0]], target[history[0]] = OPTIONS["alpha"], 1.0
    user = torch.linalg.lstsq(items, model.newcomers(history)[0]).solution.requires_grad_()
    loss = (weight * (target - items @ user) ** 2).sum() + OPTIONS["regularisation"] * (user**2).sum()
    (gradient,) = torch.autograd.grad(loss, user)
    assert gradient.abs().max() < 1e-8
