"""Simulated encryption: what is rounded, and how long messages would be."""

import pytest
import torch

from confed.messages import Agreement, TableRows, Upload, dense
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.privacy.encrypted import SimulatedPaillier
from confed.privacy.filters import Chain
from confed.testing import tiny

BASE = torch.linspace(0.0, 1.0, 20, dtype=torch.float64).view(5, 4)
AGREED = Agreement(
    5, torch.float64, {"items": (5, 4), "net": (3,)}, {}, frozenset(), {"items": "participants", "net": "samples"}
)


def upload():
    index = torch.tensor([[1, 3], [0, 5]])
    rows = torch.randn(2, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    table = TableRows(BASE[None], torch.zeros(2, dtype=torch.int64), index, rows)
    net = torch.randn(2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return Upload(torch.tensor([4, 7]), {"items": table, "net": net, "loss": torch.tensor([0.123456789, 0.2])})


def test_changes_are_multiples_of_the_precision_and_nothing_else_moves():
    bases = {"items": BASE, "net": torch.full((3,), 0.3, dtype=torch.float64)}
    before, after = upload(), SimulatedPaillier(1e-2).leaving(upload(), AGREED, bases, (0,))
    for name, base in bases.items():
        sent, exact = dense(after.tensors[name]), dense(before.tensors[name])
        steps = (sent - base) / 1e-2
        torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-9)
        assert float((sent - exact).abs().max()) <= 0.5e-2 + 1e-12
        assert not torch.equal(sent, exact)
    assert torch.equal(dense(after.tensors["items"])[0, 2], BASE[2])
    assert torch.equal(after.tensor("loss"), before.tensor("loss"))


@pytest.mark.parametrize(("bits", "each"), [(1024, 256), (2048, 512)])
def test_a_ciphertext_is_twice_as_long_as_the_key(bits, each):
    assert Chain((SimulatedPaillier(key_bits=bits),)).longer(AGREED) == (20 + 3) * (each - 8)
    assert Chain().longer(AGREED) == 0


def rounds(he, count=3):
    method = method_named("fedmf")
    trainer = method.trainer(Terms(method.config(None, {"dim": 4, "he": he}), seed=0, dtype="float64"), tiny.cut(), {})
    return [trainer.round(number) for number in range(1, count + 1)], trainer.state()


def test_fedmf_accounts_for_ciphertexts_and_hardly_changes():
    plain, one = rounds("off")
    hidden, other = rounds("simulated")
    more = tiny.USERS * tiny.ITEMS * 4 * (256 - 8)
    for without, with_ in zip(plain, hidden, strict=True):
        assert with_.upload_bytes - without.upload_bytes == more == with_.download_bytes - without.download_bytes
        assert with_.notes["encryption"]["everybody"] == {
            "simulated": True,
            "precision": 1e-5,
            "bytes_per_number": 256,
        }
    assert not torch.equal(one["server.items"], other["server.items"])
    torch.testing.assert_close(one["server.items"], other["server.items"], rtol=1e-2, atol=1e-3)
