import numpy as np

from confed.server.selection import Selection


def test_everyone():
    assert Selection().participants(np.arange(5), seed=0, round_=1).tolist() == [0, 1, 2, 3, 4]


def test_a_fraction_is_drawn_anew_every_round_and_depends_on_the_seed():
    draws = [
        Selection(0.3).participants(np.arange(100), seed, number) for seed, number in [(0, 1), (0, 1), (0, 2), (1, 1)]
    ]
    assert all(len(np.unique(d)) == 30 for d in draws)
    assert draws[0].tolist() == draws[1].tolist()
    assert draws[0].tolist() not in (draws[2].tolist(), draws[3].tolist())


def test_everyone_has_the_same_chance():
    counts = np.zeros(20)
    for number in range(2000):
        counts[Selection(0.25).participants(np.arange(20), 0, number)] += 1
    assert np.abs(counts / 2000 - 0.25).max() < 0.05


def test_at_least_one():
    assert len(Selection(0.001).participants(np.arange(10), 0, 1)) == 1


def test_ids_choose_whatever_their_order():
    ids = np.array([2**40 + 3, -7, 12, 5, 2**62, 0, 99, 1000])
    order = np.random.default_rng(0).permutation(len(ids))
    chosen = ids[Selection(0.4).participants(ids, 0, 3)]
    again = ids[order][Selection(0.4).participants(ids[order], 0, 3)]
    assert sorted(chosen.tolist()) == sorted(again.tolist())
    assert sorted(chosen.tolist()) != sorted(ids[Selection(0.4).participants(np.arange(len(ids)), 0, 3)].tolist())
