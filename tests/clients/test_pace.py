import pytest
import torch

from confed.clients.pace import Pace
from confed.clients.procedures import Phase, Procedure, Step


def pace(clients=3, **options):
    return Pace(clients, Phase((), epochs=9, batch_size=4, **options))


def test_without_decay_and_tolerance_a_rate_is_what_it_was():
    rate = torch.tensor([1.0, 2.0, 3.0])
    assert pace().rate(0.1, 2) == 0.1
    assert pace().rate(rate, 3) is rate


def test_each_clients_rate_shrinks_with_its_own_batches():
    own = pace(batch_decay=0.5)
    own.finish_batch(3)
    own.finish_batch(1)
    assert own.rate(8.0, 3).tolist() == [2.0, 4.0, 4.0]
    assert own.rate(torch.tensor([8.0, 4.0, 2.0]), 2).tolist() == [2.0, 2.0]


def test_a_client_stops_when_its_loss_has_settled_and_does_not_start_again():
    own = pace(tolerance=0.1)
    assert not own.finish_epoch(torch.tensor([1.0, 1.0, -2.0]))
    assert own.running.tolist() == [True, True, True]
    assert not own.finish_epoch(torch.tensor([0.95, 0.5, -2.1]))
    assert own.running.tolist() == [False, True, False]
    assert own.rate(1.0, 3).tolist() == [0.0, 1.0, 0.0]
    assert own.finish_epoch(torch.tensor([0.1, 0.49, -9.0]))
    assert not own.running.any()


def test_nobody_stops_without_a_tolerance():
    own = pace()
    assert not any(own.finish_epoch(torch.zeros(3)) for _ in range(3))
    assert own.running.all()


@pytest.mark.parametrize(("number", "left"), [(1, 1.0), (2, 0.5), (4, 0.125)])
def test_all_rates_shrink_round_by_round(number, left):
    phase = Phase((Step({"a": 8.0, "b": torch.tensor([4.0])}, ()),), 1, 4)
    (slowed,) = Procedure((phase,), 1, round_decay=0.5).at(number)
    rates = slowed.steps[0].rates
    assert rates["a"] == 8.0 * left and rates["b"].tolist() == [4.0 * left]
