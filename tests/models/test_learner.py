import torch

from confed.models.learner import Learner, batches_of


def stepped(learner, steps):
    for step in range(steps):
        for value in learner.params.values():
            value.grad = torch.full_like(value, 0.1 * (step + 1))
        learner.adam.step()


def test_a_loaded_learner_steps_as_the_saved_one():
    one, other = (Learner({"a": torch.ones(3, 2)}, 0.1, torch.float64) for _ in range(2))
    stepped(one, 3)
    other.load({name: tensor.clone() for name, tensor in one.state().items()})
    stepped(one, 2)
    stepped(other, 2)
    assert torch.equal(one.params["a"], other.params["a"])


def test_a_state_from_before_the_first_step_can_be_loaded():
    one, other = (Learner({"a": torch.ones(3, 2)}, 0.1, torch.float64) for _ in range(2))
    other.load(one.state())
    stepped(one, 1)
    stepped(other, 1)
    assert torch.equal(one.params["a"], other.params["a"])


def test_serving_parameters_are_a_copy():
    learner = Learner({"a": torch.ones(3, 2)}, 0.1, torch.float32)
    kept = learner.parameters()
    stepped(learner, 1)
    assert (kept["param.a"] == 1).all()
    learner.load_params(kept)
    assert (learner.params["a"] == 1).all()


def test_batches_keep_the_short_one():
    rows = list(batches_of(4, torch.arange(10), torch.arange(10) * 2))
    assert [len(first) for first, _ in rows] == [4, 4, 2]
    assert all(torch.equal(second, 2 * first) for first, second in rows)
