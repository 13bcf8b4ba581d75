"""Users as companies see them, on a plane and in clusters."""

import numpy as np
import pytest
import torch

import confed
from confed.analysis.preferences import (
    by_size,
    cloud_of,
    compactness,
    main_directions,
    preference_map,
    preference_maps,
    preferences,
    some_users,
)
from confed.models.compactness import CoClustering
from confed.runs.finished import Run
from confed.testing import tiny_domains
from tests.runs.short import FEW, train, train_companies

TWO = CoClustering(clusters=2)
TINY = {"dim": 8, "negatives": 15, "more_negatives": [], "cutoffs": [5, 10]}


def rows(users=40, dim=5, apart=10.0, seed=0):
    """Half of the users around one mean, half around another."""
    drawn = torch.Generator().manual_seed(seed)
    mean = torch.randn(users, dim, generator=drawn)
    mean[users // 2 :, 0] += apart
    return {"mean": mean, "deviation": torch.rand(users, dim, generator=drawn) + 0.1}


def test_clusters_are_those_of_co_clustering_the_largest_first():
    points = rows()
    points["mean"][19, 0] += 10.0
    found = cloud_of(points, TWO)
    assert found.cluster.tolist() == [1] * 19 + [0] * 21
    assert found.compactness < 0.5 * found.by_chance
    assert by_size(np.array([7, 2, 2, 5, 5, 5])).tolist() == [2, 1, 1, 0, 0, 0]


def test_an_ellipse_is_one_deviation_of_the_projected_gaussian():
    points = rows()
    found = cloud_of(points, TWO)
    mean, deviation = (points[name].double().numpy() for name in ("mean", "deviation"))
    plane = main_directions(mean)
    np.testing.assert_allclose(found.places, (mean - mean.mean(axis=0)) @ plane.T, atol=1e-9)
    for user in (0, 17, 39):
        covariance = plane @ np.diag(deviation[user] ** 2) @ plane.T
        away = found.outlines()[user] - found.places[user]
        np.testing.assert_allclose(np.einsum("ci,ij,cj->c", away, np.linalg.inv(covariance), away), 1.0)
        np.testing.assert_allclose(found.outlines(0.5)[user] - found.places[user], away / 2)


def test_the_plane_has_the_directions_of_largest_variance():
    rng = np.random.default_rng(0)
    plane = main_directions(rng.normal(size=(500, 4)) * [0.1, 3.0, 0.2, 9.0])
    np.testing.assert_allclose(plane @ plane.T, np.eye(2), atol=1e-12)
    assert np.abs(plane[[0, 1], [3, 1]]).min() > 0.99


@pytest.mark.parametrize(("users", "dim"), [(5, 1), (1, 3), (2, 2)])
def test_what_spans_no_plane_is_drawn_nevertheless(users, dim):
    found = cloud_of(rows(users, dim), TWO)
    assert found.places.shape == (users, 2) and np.isfinite(found.outlines()).all()


def test_compactness_by_hand():
    points = np.array([[0.0], [2.0], [10.0], [10.0]])
    within = (1 + 1 + 0 + 0) / 4
    pairs = (4 + 100 + 100 + 64 + 64 + 0) / 6
    assert compactness(points, np.array([0, 0, 1, 1])) == pytest.approx(within / pairs)
    assert compactness(np.ones((3, 2)), np.array([0, 0, 1])) == 0.0


def test_clusters_by_lot_have_the_compactness_of_chance():
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 4)), np.arange(60) % 15
    drawn = [compactness(points, rng.permutation(labels)) for _ in range(400)]
    assert np.mean(drawn) == pytest.approx((60 - 15) / (2 * 60), rel=0.01)


def test_ellipses_that_would_hide_everything_are_drawn_smaller():
    points = rows()
    assert cloud_of(points, TWO).shrunk == 1
    wide = {**points, "deviation": 100 * points["deviation"]}
    by = cloud_of(wide, TWO).shrunk
    assert by in (10, 20, 50)
    found = preference_map("a", ["u"] * 40, {"now": points, "wide": wide}, TWO)
    assert "deviation" not in found.said("now") and f"Ellipses have 1/{by} of a deviation." in found.said("wide")


def test_every_moment_has_a_picture_that_says_who_is_who():
    users = [f"u{number}" for number in range(40)]
    found = preference_map("books", users, {"before": rows(), "after": rows(seed=1)}, TWO)
    figure, cloud = found.figure("after"), found.clouds["after"]
    ellipses = [trace for trace in figure.data if trace.mode == "lines"]
    dots = [trace for trace in figure.data if trace.mode == "markers"]
    assert len(dots) == 1 and len(ellipses) == 2
    assert sum(np.isnan(trace.x).sum() for trace in ellipses) == 40  # an outline, a gap
    assert dots[0].text[3].startswith("user 3, cluster ")
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.title.text == "books, after"
    assert found.said("after").startswith(f"40 users in 2 clusters: compactness {cloud.compactness:.3f}, ")
    assert "u17" not in figure.to_json()  # nobody is named


def test_points_are_dots():
    found = cloud_of({"mean": rows()["mean"]}, TWO)
    assert found.covariances is None and found.outlines() is None
    figure = preference_map("a", list("ab" * 20), {"now": {"mean": rows()["mean"]}}, TWO).figure("now")
    assert [trace.mode for trace in figure.data] == ["markers"]


def test_who_is_shown_depends_on_the_id_alone():
    users = [f"u{number}" for number in range(400)]
    shown = some_users(users)
    assert len(shown) == 150 and (np.diff(shown) > 0).all()
    backwards = users[::-1]
    assert {users[user] for user in shown} == {backwards[user] for user in some_users(backwards)}
    assert some_users(users[:7]).tolist() == list(range(7))


@pytest.mark.parametrize(
    ("method", "options", "moments", "distributions"),
    [
        ("fppdm++", {}, ["before training", "after round 1"], True),
        ("fppdm++", {"variant": "P"}, ["before training", "after round 1"], False),
        ("fppdm++", {"variant": "B"}, ["after round 1"], False),
        ("fppdm", {}, ["after round 1"], True),
    ],
)
def test_maps_of_a_run(method, options, moments, distributions, tmp_path):
    run = confed.run(method, tiny_domains.domains(), rounds=1, options={**TINY, **options}, out=tmp_path)
    maps = preference_maps(run)
    assert [found.domain for found in maps] == list(run.domains)
    for found in maps:
        assert list(found.clouds) == moments
        assert all(len(at.cluster) == len(found.users) for at in found.clouds.values())
        assert all((at.covariances is not None) == distributions for at in found.clouds.values())
    assert len({tuple(found.users) for found in maps}) == 1  # the same people everywhere


@pytest.mark.parametrize("method", ["fedmf-silo", "popularity"])
def test_methods_without_distributions_have_no_maps(method, tmp_path):
    options = {"negatives": 15, "more_negatives": [], "cutoffs": [5, 10]}
    run = confed.run(method, tiny_domains.domains(), rounds=1, options=options, out=tmp_path)
    assert preference_maps(run) == [] and preferences(run) == {}


def test_companies_see_their_users_as_they_told_the_server(tmp_path):
    """Everybody is known everywhere here: the server's rows are the means over domains."""
    run = train_companies(tmp_path, rounds=2)
    seen = preferences(run)
    matching = run._prepared().cut.matching
    for part in ("mean", "deviation"):
        told = np.zeros((matching.people, FEW["dim"]))
        for domain, users in seen.items():
            told[matching.numbers[domain]] += users.chosen[part].numpy()[matching.users[domain]] / len(seen)
        np.testing.assert_allclose(run.best_state()[f":server/{part}"].numpy(), told, atol=1e-6)
        assert not np.array_equal(seen["a"].start[part], seen["a"].chosen[part])
    assert seen["a"].users == run._prepared().cut.parts["a"].user_ids


def test_where_companies_start_is_a_function_of_the_seed(tmp_path):
    run, longer = train_companies(tmp_path, rounds=1), train_companies(tmp_path, rounds=2)
    other = train_companies(tmp_path, rounds=1, seed=1)
    opened = preferences(Run.open(run.folder.path))
    for domain, seen in preferences(run).items():
        assert np.array_equal(seen.start["mean"], preferences(longer)[domain].start["mean"])
        assert np.array_equal(seen.chosen["mean"], opened[domain].chosen["mean"])
        assert not np.array_equal(seen.start["mean"], preferences(other)[domain].start["mean"])


def test_users_without_interactions_are_left_out(tmp_path):
    options = {"select_metric": "mrr@10"}
    data = "synthetic:domains=2,users=60,items=60"
    run = train_companies(tmp_path, rounds=1, data=data, protocol="cold", options=options)
    for domain, seen in preferences(run).items():
        lengths = run._prepared().cut.parts[domain].training.positives.lengths
        assert (lengths == 0).any()
        assert len(seen.users) == len(seen.start["mean"]) == (lengths > 0).sum()


def test_people_as_clients_have_no_companies_that_see_them(tmp_path):
    assert preferences(train(out=tmp_path, rounds=1)) == {}
