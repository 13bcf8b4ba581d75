import pytest
import torch

from confed.initial import glorot, initial, normal, ones, orthogonal, uniform, zeros


@pytest.mark.parametrize(("draw", "deviation"), [(normal(0.3), 0.3), (uniform(0.6), 0.6 / 3**0.5), (zeros, 0.0)])
def test_deviations(draw, deviation):
    assert float(initial(0, "x", (200, 100), draw).std()) == pytest.approx(deviation, rel=0.02)


def test_ones():
    assert initial(0, "x", (2, 3), ones).tolist() == [[1.0] * 3] * 2


def test_glorot_keeps_the_length_of_what_it_is_applied_to():
    weights = initial(0, "w", (256, 256), glorot)
    rows = torch.randn(50, 256, dtype=torch.float64)
    ratio = (rows @ weights).norm() / rows.norm()
    assert float(ratio) == pytest.approx(1.0, rel=0.05)


def test_a_start_is_a_function_of_seed_and_name():
    assert torch.equal(initial(1, "a", (3, 2), normal(1.0)), initial(1, "a", (3, 2), normal(1.0)))
    assert not torch.equal(initial(1, "a", (3, 2), normal(1.0)), initial(1, "b", (3, 2), normal(1.0)))
    assert not torch.equal(initial(1, "a", (3, 2), normal(1.0)), initial(2, "a", (3, 2), normal(1.0)))


def test_orthogonal_matrices_keep_every_length_and_lean_nowhere():
    drawn = torch.stack([initial(seed, "w", (3, 3), orthogonal) for seed in range(2000)])
    torch.testing.assert_close(drawn @ drawn.mT, torch.eye(3, dtype=torch.float64).expand_as(drawn))
    assert float(drawn.mean(dim=0).abs().max()) < 0.05
    assert {round(float(sign)) for sign in torch.linalg.det(drawn)} == {-1, 1}
