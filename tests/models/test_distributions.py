import torch
from torch.distributions import MultivariateNormal

from confed.models.distributions import SMALLEST, named, points, squared_distances, unnamed


def gaussians(n, dim, seed):
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(n, dim, generator=generator, dtype=torch.float64)
    raw = torch.randn(n, dim, generator=generator, dtype=torch.float64)
    return mean, raw


def test_distances_of_points_are_the_closed_form_of_wasserstein():
    """|μ_a − μ_b|² + tr(Σ_a + Σ_b − 2 (Σ_a^½ Σ_b Σ_a^½)^½), with matrix roots, for diagonal covariances."""
    mean, raw = gaussians(5, 3, 0)
    where = points(mean, raw)
    deviation = where[:, 3:]
    found = squared_distances(where, where)
    for a in range(5):
        for b in range(5):
            one, other = (MultivariateNormal(mean[i], torch.diag(deviation[i] ** 2)) for i in (a, b))
            root = torch.diag(deviation[a])
            inner = root @ other.covariance_matrix @ root
            values, vectors = torch.linalg.eigh(inner)
            cross = vectors @ torch.diag(values.clamp_min(0).sqrt()) @ vectors.T
            trace = torch.trace(one.covariance_matrix + other.covariance_matrix - 2 * cross)
            expected = (mean[a] - mean[b]).square().sum() + trace
            torch.testing.assert_close(found[a, b], expected, rtol=1e-8, atol=1e-8)


def test_equal_gaussians_have_distance_zero_and_none_is_negative():
    mean, raw = gaussians(40, 6, 1)
    where = points(mean.float(), raw.float())
    found = squared_distances(where, where)
    assert (found >= 0).all()
    assert found.diagonal().max() < 1e-4


def test_small_differences_of_large_points_survive_single_precision():
    """Untrained deviations are all near 0.69: what tells users apart is a ten-thousandth of their length."""
    points_ = 0.69 + 1e-3 * torch.randn(60, 128, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    exact = squared_distances(points_, points_)
    found = squared_distances(points_.float(), points_.float()).double()
    off = ~torch.eye(60, dtype=torch.bool)
    assert float(((found - exact).abs() / exact)[off].max()) < 1e-2


def test_deviations_are_positive_whatever_the_encoder_says():
    mean, _ = gaussians(4, 3, 2)
    where = points(mean, torch.full((4, 3), -1e4, dtype=torch.float64))
    assert where[:, 3:].min() == SMALLEST


def test_names_come_and_go():
    mean, raw = gaussians(4, 3, 3)
    where = points(mean, raw)
    assert set(named(where, 3)) == {"mean", "deviation"}
    assert torch.equal(unnamed(named(where, 3)), where)
    assert set(named(mean, 3)) == {"mean"}
    assert torch.equal(unnamed(named(mean, 3)), mean)
