import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.server.clustering import elbow, kmeans, summed_cosines


def test_kmeans_finds_planted_clusters_and_repeats_itself():
    generator = torch.Generator().manual_seed(0)
    centres = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    points = (centres[:, None] + 0.1 * torch.randn(3, 20, 2, generator=generator)).reshape(60, 2)
    labels = kmeans(points, 3, seed=7)
    assert torch.equal(labels, kmeans(points, 3, seed=7))
    for planted in labels.view(3, 20):
        assert len(torch.unique(planted)) == 1
    assert len(torch.unique(labels)) == 3


def test_kmeans_on_fewer_distinct_points_than_clusters_leaves_labels_unused():
    assert len(torch.unique(kmeans(torch.ones(8, 2), 4, seed=0))) == 1
    assert len(kmeans(torch.randn(3, 2), 30, seed=0)) == 3


def test_cosines_by_hand_and_zero_rows():
    core = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    tables = torch.stack([core, torch.tensor([[0.0, 3.0], [0.0, 1.0]]), torch.zeros(2, 2), -core])
    assert summed_cosines(tables, core).tolist() == pytest.approx([2.0, 1.0, 0.0, -2.0])
    assert summed_cosines(tables, torch.zeros(2, 2)).tolist() == [0.0] * 4


def farthest_from_the_chord(scores):
    """The definition: perpendicular distance of (j, s_j) to the line through the first and the last point."""
    last = len(scores) - 1
    run, rise = last, scores[-1] - scores[0]
    distances = [abs(run * (s - scores[0]) - j * rise) / math.hypot(run, rise) for j, s in enumerate(scores)]
    return max(range(len(scores)), key=lambda j: (round(distances[j], 9), -j))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30))
def test_elbow_is_the_farthest_point_from_the_chord(values):
    scores = sorted((float(v) for v in values), reverse=True)
    assert elbow(torch.tensor(scores, dtype=torch.float64)) == farthest_from_the_chord(scores)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5.0, 5.0, 5.0, 1.0], 2),  # flat, then a drop: nearly everybody
        ([9.0, 1.0, 1.0, 0.5], 1),  # the core user's likeness to itself: nearly nobody
        ([3.0, 3.0, 3.0], 0),  # all equal: no elbow
        ([4.0, 3.0, 2.0, 1.0], 0),  # the chord itself
        ([0.3, 0.2, 0.1], 0),  # the chord up to rounding
        ([50.0, 50.0, 30.0, 23.0, 16.0, 9.0, 2.0, 2.0], 1),  # two as far: the first, whatever rounding says
        ([1.0], 0),
    ],
)
def test_elbow_by_hand(scores, expected):
    assert elbow(torch.tensor(scores, dtype=torch.float64)) == expected
