import torch

from confed.models.reversal import reversed_gradient


def test_a_gradient_is_turned_round():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = reversed_gradient(x)
    assert found.tolist() == [1.0, 2.0]
    found.square().sum().backward()
    assert x.grad.tolist() == [-2.0, -4.0]
