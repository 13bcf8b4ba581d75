import pytest
import torch

from confed.messages import Agreement, Upload
from confed.models.distributions import SMALLEST
from confed.privacy.gaussian import Gaussian

ROWS = {"mean": torch.randn(6, 4), "deviation": torch.rand(6, 4)}
COMPANIES = Agreement(
    9,
    torch.float32,
    {"mean": (9, 4), "deviation": (9, 4)},
    {},
    frozenset(ROWS),
    {"mean": "holders", "deviation": "holders"},
    by_rows=True,
)
PEOPLE = Agreement(
    5,
    torch.float64,
    {"items": (5, 2), "net": (3,)},
    {},
    frozenset({"items", "net"}),
    {"items": "participants", "net": "participants"},
)


def of_a_company():
    return Upload(torch.tensor([0]), {name: rows[None] for name, rows in ROWS.items()}, torch.arange(6))


def test_rows_are_clipped_and_short_ones_are_left_alone():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=torch.float64)
    silent = Gaussian(clip=1.0, multiplier=1e-12).blurred(rows, 0)
    torch.testing.assert_close(silent, torch.tensor([[0.6, 0.8], [0.3, 0.4]], dtype=torch.float64))


def test_the_noise_has_the_deviation_that_is_reported():
    mechanism = Gaussian(clip=2.0, multiplier=0.5)
    noise = mechanism.blurred(torch.zeros(400, 100, dtype=torch.float64), "key")
    assert float(noise.std()) == pytest.approx(mechanism.deviation, rel=0.02)
    assert mechanism.deviation == 1.0
    assert abs(float(noise.mean())) < 0.02


def test_noise_is_a_function_of_its_key():
    mechanism, rows = Gaussian(1.0, 1.0), torch.zeros(5, 4)
    assert torch.equal(mechanism.blurred(rows, 1, "a"), mechanism.blurred(rows, 1, "a"))
    assert not torch.equal(mechanism.blurred(rows, 1, "a"), mechanism.blurred(rows, 2, "a"))


def test_a_person_is_clipped_as_a_whole():
    sent = Gaussian(0.5, 1e-12).leaving(of_a_company(), COMPANIES, {}, (0,))
    length = torch.cat([sent.tensor("mean")[0], sent.tensor("deviation")[0]], dim=1).norm(dim=1)
    assert (length <= 0.5 + 1e-4).all()
    assert sent.rows.tolist() == list(range(6)) and sent.clients.tolist() == [0]


def test_noise_never_makes_a_deviation_negative():
    sent = Gaussian(1.0, 50.0, {"deviation": SMALLEST}).leaving(of_a_company(), COMPANIES, {}, (0,))
    assert sent.tensor("deviation").min() >= SMALLEST
    assert sent.tensor("mean").min() < 0


def test_the_change_of_a_client_is_clipped_as_one_and_has_noise_of_its_own():
    bases = {"items": torch.randn(5, 2, dtype=torch.float64), "net": torch.randn(3, dtype=torch.float64)}
    change = torch.full((2, 13), 2.0, dtype=torch.float64)
    tensors = {
        "items": bases["items"] + 2.0 * torch.ones(2, 5, 2).double(),
        "net": bases["net"] + torch.full((2, 3), 2.0),
    }
    upload = Upload(torch.tensor([4, 9]), tensors)
    silent = Gaussian(1.0, 1e-12).leaving(upload, PEOPLE, bases, (0, 1))
    clipped = change / change.norm(dim=1, keepdim=True)
    torch.testing.assert_close(silent.tensor("items") - bases["items"], clipped[:, :10].view(2, 5, 2))
    torch.testing.assert_close(silent.tensor("net") - bases["net"], clipped[:, 10:])
    loud = Gaussian(1.0, 1.0).leaving(upload, PEOPLE, bases, (0, 1))
    assert not torch.allclose(loud.tensor("items")[0], loud.tensor("items")[1])
    alone = Gaussian(1.0, 1.0).leaving(upload.of(torch.tensor([1])), PEOPLE, bases, (0, 1))
    assert torch.equal(alone.tensor("items")[0], loud.tensor("items")[1]), "whoever else is in the chunk"


def test_the_note_says_what_was_done():
    rows = torch.tensor([[3.0, 4.0, 0, 0], [0.3, 0.4, 0, 0]])
    upload = Upload(torch.tensor([0]), {"mean": rows[None], "deviation": torch.zeros(1, 2, 4)}, torch.arange(2))
    note = Gaussian(1.0, 0.1).note(upload, COMPANIES)
    assert note["clipped_share"] == 0.5
    assert note["mean_length"] == pytest.approx(2.75)
    assert note["noise_deviation"] == pytest.approx(0.1)
