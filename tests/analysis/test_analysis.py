"""Each analysis gives its data and a figure that shows them."""

import numpy as np
import pytest
import torch

from confed.analysis.correlation import feature_correlation
from confed.analysis.curves import (
    clipped_shares,
    domain_curves,
    domain_losses,
    learning_curves,
    lengths_sent,
    loss_curve,
    seconds_curve,
    traffic,
)
from confed.analysis.degradation import degradation, unusualness
from confed.analysis.elbow import ElbowCurve
from confed.analysis.items import ItemMap, item_map
from confed.analysis.maps import on_a_plane
from confed.analysis.overlap import DEPTH, view_overlap
from confed.analysis.participation import participation
from confed.analysis.users import user_clusters
from confed.ragged import Ragged


def line(number, members, loss=0.5):
    bits = np.packbits(np.array(members, dtype=bool)).tobytes().hex()
    scores = {"validation": {"hr@10": 10.0 * number}, "test": {"hr@10": 9.0 * number}}
    return {
        "round": number,
        "loss": loss,
        "seconds": 2.0,
        "participants": 10,
        "upload_bytes": 4000,
        "download_bytes": 1000 * number,
        "views": {"pushed": scores, "local": scores},
        "server": {"members": bits, "group": sum(members)},
    }


HISTORY = [line(1, [1] * 8 + [0] * 2), line(2, [1] * 5 + [0] * 5), line(3, [1] + [0] * 9)]


def test_participation_counts_rounds_and_members():
    seen = participation(HISTORY, clients=10)
    assert seen.rounds_in.tolist() == [3, 2, 2, 2, 2, 1, 1, 1, 0, 0]
    assert seen.members.tolist() == [8, 5, 1]
    assert seen.share_above(0.7) == pytest.approx(0.1)  # more than 2.1 of 3 rounds
    assert seen.share_above(0.6) == pytest.approx(0.5)
    assert seen.mean_share == pytest.approx(14 / 30)
    assert seen.figure().data[0].x.tolist() == seen.rounds_in.tolist()
    assert seen.figure().layout.xaxis.dtick == 1
    assert seen.said == (
        "On average 46.7 % of the clients were in the group; 10.0 % were in it in more than 70 % of the rounds, "
        "10.0 % in all 3, 20.0 % in none."
    )


def test_curves_follow_the_history():
    curves = learning_curves(HISTORY, "hr@10")
    assert curves.rounds == [1, 2, 3]
    assert curves.lines == {"pushed": [10.0, 20.0, 30.0], "local": [10.0, 20.0, 30.0]}
    assert learning_curves(HISTORY, "hr@10", "test").lines["pushed"] == [9.0, 18.0, 27.0]
    assert curves.title == "HR@10 on validation items" and curves.subject == "Validation HR@10"
    assert len(curves.figure().data) == 2
    assert loss_curve([*HISTORY, line(4, [0] * 10, loss=None)]).rounds == [1, 2, 3]
    assert seconds_curve(HISTORY).lines["seconds"] == [2.0] * 3


def domain_line(number):
    """A round of two companies, with noise."""
    domains = {"a": {"hr@10": 10.0 * number}, "b": {"hr@10": 20.0 * number}}
    noise = {"clip": 2.0, "mean_length": 3.0 * number, "clipped_share": 0.25}
    return {
        "round": number,
        "views": {"local": {key: {"hr@10": 15.0 * number, "domains": domains} for key in ("validation", "test")}},
        "server": {"losses": {"a": 1.0 / number, "b": 2.0}, "noise": {"a": noise, "b": {**noise, "clipped_share": 1}}},
    }


def test_curves_of_every_domain():
    history = [domain_line(1), domain_line(2)]
    curves = domain_curves([*history, {"round": 3, "views": {}}], "hr@10", "local")
    assert curves.rounds == [1, 2]
    assert curves.lines == {"a": [10.0, 20.0], "b": [20.0, 40.0]}
    assert learning_curves(history, "hr@10").lines == {"local": [15.0, 30.0]}
    assert domain_losses(history).lines == {"a": [1.0, 0.5], "b": [2.0, 2.0]}
    assert lengths_sent(history).lines == {"a": [3.0, 6.0], "b": [3.0, 6.0]}
    assert lengths_sent(history).levels.values == {"": 2.0}
    assert clipped_shares(history).lines == {"a": [25.0, 25.0], "b": [100, 100]}


def test_traffic_is_per_client_and_compares_with_the_mean_to_everybody():
    seen = traffic(HISTORY)
    assert seen.up.tolist() == [400.0] * 3
    assert seen.down.tolist() == [100.0, 200.0, 300.0]
    assert seen.saved == pytest.approx(0.5)
    assert [trace.name for trace in seen.figure().data][-1] == "down with the mean to everybody"
    assert seen.figure().layout.yaxis.rangemode == "tozero"
    assert seen.said.startswith(
        "Traffic of a client: up is 0.4 kB in all 3 rounds shown; down rises from 0.1 kB in round 1"
    )
    assert seen.said.endswith("All downloads together are 50 % less than with the mean to everybody.")
    averaged = traffic([{**each, "server": {}} for each in HISTORY])
    assert averaged.saved is None and len(averaged.figure().data) == 2
    assert averaged.said == averaged.curves.said
    large = traffic([{**each, "server": {}, "upload_bytes": 40_000_000} for each in HISTORY])
    assert large.curves.unit == "MB" and "up is 4.0 MB" in large.said


def test_elbow_curve_draws_group_rest_and_chord():
    curve = ElbowCurve(np.array([5.0, 5.0, 4.9, 1.0, 0.0]), 2)
    assert curve.chord.tolist() == pytest.approx([5.0, 3.75, 2.5, 1.25, 0.0])
    inside, rest = curve.figure().data[:2]
    assert len(inside.x) == 3 and len(rest.x) == 2
    assert (
        curve.said == "Similarities of 5 clients go from 5 to 0. The elbow is at rank 2, at 4.9: the group ends there."
    )
    none = ElbowCurve(np.ones(4), 0)
    assert len(none.figure().data[0].x) == 0 and none.said.endswith("there is no elbow, and so no group.")


def test_user_clusters_find_the_odd_one_out_with_distances_kept():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(40, 300))
    tables[7] += 60.0
    found = user_clusters(tables, (2, 3))
    assert found.sizes(2) == [1, 39]
    assert found.labels[2][7] != found.labels[2][0]
    assert sum(found.sizes(3)) == 40
    assert found.places.shape == (40, 2)
    assert {len(trace.x) for trace in found.figure(2).data} == {1, 39}
    assert found.said(2) == "The largest cluster has 39 of 40 clients, 97.5 %; the other has 1."
    assert found.said(3).endswith(f"the others have {found.sizes(3)[1]}, {found.sizes(3)[0]}.")


def test_item_map_shows_the_categories_drawn_and_leaves_singletons_out():
    rng = np.random.default_rng(0)
    membership = np.array([0] * 10 + [1] * 10 + [2] * 10 + [3])
    shown = item_map(rng.normal(size=(31, 6)), membership, categories=2)
    assert len(np.unique(shown.category)) == 2 and 3 not in shown.category
    assert len(shown.items) == 20 and shown.places.shape == (20, 2)
    assert len(shown.figure().data) == 2
    assert shown.by_chance == pytest.approx(9 / 19)
    assert item_map(rng.normal(size=(31, 6)), np.arange(31)) is None


def test_items_next_to_their_own_category_are_counted():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [10.5, 0.0]])
    shown = ItemMap(np.arange(4), places, np.array([0, 0, 0, 1]))
    assert shown.neighbours_alike == 0.5 and shown.by_chance == 0.5
    assert shown.said.startswith("4 items of 2 categories: 50 % lie next to one of their own category")


def test_one_dimension_can_be_drawn_too():
    assert on_a_plane(np.arange(12.0)[:, None]).shape == (12, 2)


def test_the_plane_keeps_apart_what_is_apart_and_is_seeded():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 60)), rng.normal(size=(20, 60)) + 30.0])
    plane = on_a_plane(points, seed=1)
    assert np.array_equal(plane, on_a_plane(points, seed=1))
    first, second = plane[:20], plane[20:]
    spread = max(first.std(), second.std())
    assert np.linalg.norm(first.mean(0) - second.mean(0)) > spread
    assert on_a_plane(points[:3]).shape == (3, 2)


def test_overlap_of_the_same_and_of_disjoint_rankings():
    """The last clients rank everything the other way round."""
    scores = torch.arange(2.0 * DEPTH).expand(100, -1)
    other = scores.clone()
    other[90:] *= -1
    found = view_overlap(zip(scores.split(64), other.split(64), strict=True))
    assert found.values[:90].tolist() == pytest.approx([1.0] * 90)
    assert found.values[90:].tolist() == pytest.approx([0.0] * 10)
    assert found.mean == pytest.approx(0.9)
    assert found.said == "The mean overlap is 0.900; half of the clients lie between 1.000 and 1.000."
    assert found.figure().data[0].x.tolist() == found.values.tolist()
    assert found.figure().data[0].xbins.end > 1.0  # a bin ends before its end


def test_correlations_below_the_threshold_are_not_shown():
    shared, own = torch.eye(2), torch.tensor([[1.0, 0.002], [0.004, -2.0]])
    found = feature_correlation(shared, own, client=7)
    np.testing.assert_allclose(found.entries, own.numpy() / 2)
    assert found.above == pytest.approx(0.5)  # 0.001 and 0.002 lie below
    assert found.figure().data[0].z.tolist() == [[0.5, 0.0], [0.0, -1.0]]
    assert found.said == "50 % of the 4 products lie beyond ±0.003 and have a colour; the largest is 1 from zero."


def test_an_unusual_client_shares_nothing_with_others():
    """Cosines by hand: clients 0 and 1 share one of two and one items, client 2 shares nothing."""
    positives = Ragged.of([[0, 1], [1], [5, 5, 6]])
    expected = 1 - np.array([2**-0.5, 2**-0.5, 0.0]) / 2
    assert unusualness(positives).tolist() == pytest.approx(expected.tolist())
    found = degradation(np.array([1.0, 1.0, 3.0]), positives)
    assert found.rank_correlation == pytest.approx(1.0)
    assert found.items.tolist() == [2, 1, 3]
    assert found.figure().data[0].y.tolist() == [1.0, 1.0, 3.0]
    assert found.said == "The rank correlation over 3 clients is +1.00: the more unlike others, the further away."
    assert degradation(-found.distance, positives).said.endswith("-1.00: the more unlike others, the nearer.")
    alike = degradation(np.ones(3), positives)
    assert alike.rank_correlation == 0.0 and alike.said.endswith("is +0.00: hardly any relation.")
