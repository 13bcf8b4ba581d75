import numpy as np
import pytest

from confed.privacy.virtual import draw_virtual
from confed.random import Stream
from confed.testing.tiny import USERS, cut

CLIENTS = np.arange(USERS)


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.4, 1.5])
def test_as_many_as_the_ratio_says_from_the_pool_of_negatives(ratio):
    data = cut().training
    items, coins = draw_virtual(data, CLIENTS, ratio, Stream.of(0, "virtual", 1))
    assert items.lengths.tolist() == [int(ratio * n + 1e-9) for n in data.positives.lengths]
    assert len(coins) == len(items.values)
    for client in CLIENTS:
        assert not set(items[client].tolist()) & set(data.excluded[client].tolist())


def test_three_tenths_of_ten_is_three():
    data = cut().training
    items, _ = draw_virtual(data, CLIENTS, 0.3, Stream.of(0, "virtual", 1))
    tens = data.positives.lengths % 10 == 0
    assert (items.lengths[tens] == 3 * data.positives.lengths[tens] // 10).all()


def test_coins_are_fair_and_draws_differ_from_round_to_round():
    data = cut().training
    items, coins = draw_virtual(data, CLIENTS, 50.0, Stream.of(0, "virtual", 1))
    assert abs(coins.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(coins))
    others, _ = draw_virtual(data, CLIENTS, 50.0, Stream.of(0, "virtual", 2))
    assert (items.values != others.values).any()


def test_a_client_draws_the_same_whatever_its_company():
    data = cut().training
    together, _ = draw_virtual(data, CLIENTS, 0.5, Stream.of(0, "virtual", 1))
    alone, _ = draw_virtual(data, CLIENTS[5:6], 0.5, Stream.of(0, "virtual", 1))
    assert together[5].tolist() == alone[0].tolist()
