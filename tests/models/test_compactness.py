import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import torch
from sklearn.metrics import adjusted_rand_score

from confed.models.compactness import (
    CoClustering,
    cluster_points,
    entropy_kmeans,
    iterated,
    laplacian,
    similarity,
    smallest_eigenvectors,
)
from confed.models.distributions import squared_distances
from confed.random import Stream

STREAM = Stream.of(0, "test")


def some(n, dim=5, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def planted(groups, each, dim=6, spread=0.3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(groups, dim, generator=generator, dtype=torch.float64)
    group = torch.arange(groups).repeat_interleave(each)
    noise = spread * torch.randn(len(group), dim, generator=generator, dtype=torch.float64)
    return centres[group] + noise, group


def test_similarity_minimises_the_papers_objective():
    """Each row of S minimises Σ_j s_ij D_ij + ε s_ij log s_ij on the simplex without its own place: a solver agrees."""
    users = some(6)
    distances = squared_distances(users, users) / 10
    found = similarity(distances, 0.3)
    for i in range(6):
        others = [j for j in range(6) if j != i]
        cost = distances[i, others].numpy()
        solved = scipy.optimize.minimize(
            lambda s, cost=cost: float(s @ cost + 0.3 * (s * np.log(np.maximum(s, 1e-300))).sum()),
            np.full(5, 0.2),
            bounds=[(1e-9, 1)] * 5,
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(found[i, others].numpy(), solved.x, atol=1e-4)


def test_similarity_rows_sum_to_one_and_nobody_is_similar_to_himself():
    users = some(20)
    found = similarity(squared_distances(users, users), 0.05)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(20, dtype=torch.float64))
    assert (found.diagonal() == 0).all()


def test_laplacian_is_symmetric_and_never_negative():
    users = some(20)
    matrix = laplacian(similarity(squared_distances(users, users) / 10, 0.05))
    torch.testing.assert_close(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix.numpy()).min() > -1e-12
    torch.testing.assert_close(matrix.sum(dim=1), torch.zeros(20, dtype=torch.float64), atol=1e-12, rtol=0)


def test_the_eigenvectors_have_the_smallest_trace_there_is():
    """Ky Fan: no orthonormal F has a smaller tr(FᵀLF) than the sum of the smallest eigenvalues."""
    users = some(30)
    matrix = laplacian(similarity(squared_distances(users, users) / 10, 0.05))
    found = smallest_eigenvectors(matrix, 4)
    torch.testing.assert_close(found.T @ found, torch.eye(4, dtype=torch.float64))
    trace = torch.trace(found.T @ matrix @ found)
    smallest = scipy.linalg.eigh(matrix.numpy(), eigvals_only=True, subset_by_index=[0, 3]).sum()
    assert float(trace) == pytest.approx(smallest, abs=1e-10)
    for seed in range(20):
        other = torch.linalg.qr(some(30, 4, seed)).Q
        assert torch.trace(other.T @ matrix @ other) > trace


def test_orthogonal_iteration_reaches_the_eigenvectors():
    users = some(30)
    matrix = laplacian(similarity(squared_distances(users, users) / 10, 0.05))
    exact = smallest_eigenvectors(matrix, 4)
    start = torch.linalg.qr(exact + 0.1 * some(30, 4, 7)).Q
    near, far = iterated(matrix, start, 2), iterated(matrix, start, 3000)
    project = exact @ exact.T
    before, after = ((project - f @ f.T).norm() for f in (start, near))
    assert after < before
    torch.testing.assert_close(far @ far.T, project, rtol=0, atol=1e-6)
    torch.testing.assert_close(near.T @ near, torch.eye(4, dtype=torch.float64))


def test_entropy_kmeans_ends_where_neither_step_changes_anything():
    rows, _ = planted(3, 20)
    assignment = entropy_kmeans(rows, 3, 0.5, 200, STREAM, 0)
    torch.testing.assert_close(assignment.sum(dim=1), torch.ones(60, dtype=torch.float64))
    centres = torch.stack([(assignment[:, j, None] * rows).sum(0) / assignment[:, j].sum() for j in range(3)])
    torch.testing.assert_close(cluster_points(rows, assignment), centres)
    exponents = torch.tensor(
        [[-float((row - centre).square().sum()) / 0.5 for centre in centres] for row in rows], dtype=torch.float64
    )
    again = exponents.exp() / exponents.exp().sum(dim=1, keepdim=True)
    torch.testing.assert_close(assignment, again, atol=1e-6, rtol=1e-6)


def test_without_entropy_it_is_k_means():
    rows, group = planted(3, 20)
    assignment = entropy_kmeans(rows, 3, 1e-3, 50, STREAM, 1)
    hard = assignment.argmax(dim=1)
    assert adjusted_rand_score(group, hard) == 1
    assert assignment.max(dim=1).values.min() > 1 - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_two_planted_clusters_in_a_batch_of_64(seed):
    users, group = planted(2, 32, seed=seed)
    assignment = CoClustering(clusters=2).assign(users, STREAM, seed)
    assert adjusted_rand_score(group, assignment.argmax(dim=1)) > 0.9


def test_at_the_printed_scale_all_clusters_are_one():
    """Why the spectral rows are scaled: with FᵀF = I and ε = 0.05 every centre falls into the mean."""
    users, group = planted(4, 64)
    settings = CoClustering(clusters=4)
    indicator = settings.indicators(squared_distances(users, users), 4)
    printed = entropy_kmeans(indicator, 4, 0.05, 300, STREAM, 0)
    assert (printed - 0.25).abs().max() < 0.05
    scaled = settings.assign(users, STREAM, 0)
    assert adjusted_rand_score(group, scaled.argmax(dim=1)) > 0.9


def test_similarities_and_indicators_in_turn_by_hand():
    """Eq. 8 and 9 written out: loops for s_ij with η |f_i − f_j|², all eigenvectors, two steps of iteration by QR."""
    users, entropy, coupling = some(9), 0.3, 4.0
    apart = np.array([[float((a - b).square().sum()) for b in users] for a in users])
    apart /= apart.mean()
    rows = np.zeros((9, 3))
    for turn in range(3):
        similar = np.zeros((9, 9))
        for i in range(9):
            others = [j for j in range(9) if j != i]
            cost = [apart[i, j] + coupling * ((rows[i] - rows[j]) ** 2).sum() for j in others]
            similar[i, others] = np.exp(-np.array(cost) / entropy) / np.exp(-np.array(cost) / entropy).sum()
        both = (similar + similar.T) / 2
        matrix = np.diag(both.sum(axis=1)) - both
        if turn == 0:
            rows = scipy.linalg.eigh(matrix)[1][:, :3]
        else:
            for _ in range(2):
                rows = scipy.linalg.qr((2 * matrix.diagonal().max() * np.eye(9) - matrix) @ rows, mode="economic")[0]
    ours = CoClustering(3, entropy, coupling, alternations=3)
    found = ours.indicators(squared_distances(users, users), 3).numpy()
    # Columns are defined up to their sign.
    np.testing.assert_allclose(found @ found.T, rows @ rows.T, atol=1e-10)
    np.testing.assert_allclose(np.abs(found), np.abs(rows), atol=1e-10)


def test_the_scale_of_distances_does_not_matter():
    """D-40: distances count relative to their mean."""
    users, _ = planted(3, 8)
    near, far = (CoClustering(3).assign(users * scale, STREAM, 0) for scale in (1.0, 1000.0))
    torch.testing.assert_close(near, far)


def test_the_loss_by_hand_and_its_gradient():
    """Σ_j ζ_ij |x_i − c_j|² with ζ and c held fixed: the gradient is 2 Σ_j ζ_ij (x_i − c_j) / n."""
    users = some(12).requires_grad_()
    settings = CoClustering(clusters=3)
    loss = settings.loss(users, STREAM, 4)
    loss.backward()
    with torch.no_grad():
        assignment = settings.assign(users, STREAM, 4)
        centres = cluster_points(users, assignment)
        expected = torch.zeros_like(users)
        total = 0.0
        for i in range(12):
            for j in range(3):
                away = users[i] - centres[j]
                total += float(assignment[i, j] * away.square().sum()) / 12
                expected[i] += 2 * assignment[i, j] * away / 12
    assert float(loss.detach()) == pytest.approx(total)
    assert total > 0
    torch.testing.assert_close(users.grad, expected)


@pytest.mark.parametrize(
    "users",
    [
        torch.ones(30, 4),
        torch.ones(1, 4),
        torch.ones(2, 4),
        torch.cat([torch.zeros(29, 4), torch.full((1, 4), 1e6)]),
        torch.cat([torch.zeros(15, 4), torch.ones(15, 4)]),
    ],
    ids=["identical", "one user", "two users", "an isolated user", "two points"],
)
@pytest.mark.parametrize("clusters", [1, 2, 15])
def test_degenerate_users_give_finite_losses(users, clusters):
    users = users.double().requires_grad_()
    loss = CoClustering(clusters=clusters).loss(users, STREAM, 0)
    loss.backward()
    assert torch.isfinite(loss)
    assert loss >= 0
    assert torch.isfinite(users.grad).all()
