import math

import pytest
import torch

from confed.clients.objectives import BCE, Batch, SaturatingBCE


def batch(logits, labels, weights):
    return Batch(logits, labels, weights, {}, {})


def test_bce_is_the_mean_over_each_clients_rows():
    logits = torch.tensor([[0.0, 2.0, 9.0], [1.0, -1.0, 0.5]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    weights = torch.tensor([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64)
    value = BCE().value(batch(logits, labels, weights))
    first = (math.log(2) + math.log(1 + math.exp(2))) / 2
    second = (math.log(1 + math.e) + math.log(1 + math.e) + math.log(1 + math.exp(-0.5))) / 3
    assert value.tolist() == pytest.approx([first, second])


def test_both_forms_agree_away_from_saturation():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (2, 8), generator=generator).double()
    weights = torch.full((2, 8), 1 / 8, dtype=torch.float64)
    gradients = []
    for term in (BCE(), SaturatingBCE()):
        logits = torch.linspace(-3, 3, 16, dtype=torch.float64).view(2, 8).requires_grad_()
        term.value(batch(logits, labels, weights)).sum().backward()
        gradients.append(logits.grad)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)
