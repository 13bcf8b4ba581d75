import numpy as np
import pytest
import torch

from confed.adam import ADAM, adam_schedule, adam_step, adam_without_gradient

STEPS_BEFORE, WIDTH, RATE = 3, 9, 0.05


def by_torch(gradients):
    """A parameter after each step."""
    param = torch.linspace(-1.0, 1.0, WIDTH, dtype=torch.float64).requires_grad_()
    adam = torch.optim.Adam([param], lr=RATE, foreach=False)
    for gradient in gradients:
        param.grad = torch.from_numpy(gradient)
        adam.step()
        yield param.detach().numpy().copy()


def ours():
    param = np.linspace(-1.0, 1.0, WIDTH)
    return param, np.zeros(WIDTH), np.zeros(WIDTH)


def stepped(state, gradients, rates, corrections):
    param, first, second = state
    for gradient, rate, correction in zip(gradients, rates, corrections, strict=True):
        adam_step(param, gradient, first, second, rate, correction, ADAM)


def test_steps_are_torch_s():
    gradients = np.random.default_rng(0).standard_normal((20, WIDTH))
    state, schedule = ours(), adam_schedule(RATE, 0, 20, ADAM)
    stepped(state, gradients, *schedule)
    *_, expected = by_torch(gradients)
    np.testing.assert_allclose(state[0], expected, rtol=1e-12)


@pytest.mark.parametrize("missed", [0, 1, 30, 392, 393, 394, 1000])
def test_steps_without_gradient_are_made_up_for_at_once(missed):
    gradients = np.zeros((STEPS_BEFORE + missed + 1, WIDTH))
    gradients[[*range(STEPS_BEFORE), -1]] = np.random.default_rng(1).standard_normal((STEPS_BEFORE + 1, WIDTH))
    state, schedule = ours(), np.stack(adam_schedule(RATE, 0, len(gradients), ADAM))
    stepped(state, gradients[:STEPS_BEFORE], *schedule[:, :STEPS_BEFORE])
    adam_without_gradient(*state, np.empty(WIDTH), *schedule[:, STEPS_BEFORE:-1].copy(), ADAM)
    *_, before, expected = by_torch(gradients)
    np.testing.assert_allclose(state[0], before, rtol=1e-11)
    stepped(state, gradients[-1:], *schedule[:, -1:])
    np.testing.assert_allclose(state[0], expected, rtol=1e-11)


def test_who_never_had_a_gradient_stays():
    state = ours()
    before = state[0].copy()
    adam_without_gradient(*state, np.empty(WIDTH), *adam_schedule(RATE, 0, 5, ADAM), ADAM)
    assert np.array_equal(state[0], before)


def test_a_schedule_goes_on_where_the_last_one_ended():
    whole, rest = adam_schedule(RATE, 0, 9, ADAM), adam_schedule(RATE, 4, 5, ADAM)
    for all_of_it, later in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(all_of_it[4:], later)
