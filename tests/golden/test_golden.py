"""Nothing that was moved has changed what comes out."""

import pytest
import torch

from confed.methods.registry import METHODS
from tests.golden.cases import DTYPES, REAL, cases, real_trainer, sketch, two_rounds
from tests.golden.store import read, real_path, recorded, tiny_path
from tests.realdata import require

TOLERANCES = {"float64": 1e-10, "float32": 1e-5}
REAL_TOLERANCE = 5e-5
"""Of float32: between two processors Fed3CR's own tables differed by 1.6e-5."""
ALL = [case for method in METHODS for case in cases(method)]


def tolerance(case, dtype):
    """The published cross-entropy is computed in float32 whatever the rest is: other processors differ by 3e-8."""
    return TOLERANCES["float32" if "reproduction.saturating_bce" in case.options else dtype]


def differences(state, golden):
    """By tensor, the largest difference, relative to the largest entry; whole numbers must be the same."""
    assert state.keys() == golden.keys()
    found = {}
    for name, expected in golden.items():
        assert (state[name].shape, state[name].dtype) == (expected.shape, expected.dtype), name
        if not expected.dtype.is_floating_point:
            assert torch.equal(state[name], expected), name
        elif expected.numel():
            largest = float(expected.abs().max()) or 1.0
            found[name] = float((state[name].double() - expected.double()).abs().max()) / largest
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.method}-{case.name}")
def test_tiny(case, dtype):
    golden, notes = read(tiny_path(case.method), f"{case.name}/{dtype}")
    state, noted = two_rounds(case.trainer(dtype))
    assert noted == notes
    worst = differences(state, golden)
    assert all(value <= tolerance(case, dtype) for value in worst.values()), worst


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.method}-{case.name}")
def test_tiny_with_every_message_sent_through_bytes(case):
    golden, notes = read(tiny_path(case.method), f"{case.name}/float64")
    state, noted = two_rounds(case.in_bytes("float64"))
    assert noted == notes
    worst = differences(state, golden)
    assert all(value <= tolerance(case, "float64") for value in worst.values()), worst


@pytest.mark.parametrize("method", REAL)
def test_real(method):
    require(REAL[method])
    golden, notes = read(real_path(method), "default")
    state, noted = two_rounds(real_trainer(method))
    assert noted == notes
    assert state.keys() == golden.keys()
    for name, tensor in state.items():
        assert (sketch(tensor) - golden[name]).abs().max() <= REAL_TOLERANCE * golden[name][0], name


@pytest.mark.parametrize("method", METHODS)
def test_everything_recorded_is_still_compared(method):
    """A variant that disappears takes its golden state with it, openly."""
    assert recorded(tiny_path(method)) == {f"{case.name}/{dtype}" for case in cases(method) for dtype in DTYPES}


def test_a_difference_is_found():
    golden = {"table": torch.tensor([1.0, -4.0]), "group": torch.tensor([1, 2])}
    assert differences({"table": torch.tensor([1.0, -4.4]), "group": torch.tensor([1, 2])}, golden) == {
        "table": pytest.approx(0.1)
    }
    with pytest.raises(AssertionError, match="group"):
        differences({"table": golden["table"], "group": torch.tensor([1, 3])}, golden)


@pytest.mark.parametrize("shape", [(), (7,), (5, 3), (70, 6, 4)])
def test_a_sketch_tells_tensors_apart(shape):
    """Any single entry that changes changes the norm's projections; the norm is the norm."""
    tensor = torch.randn(shape, dtype=torch.float64)
    reference = sketch(tensor)
    assert reference[0] == pytest.approx(float(tensor.norm()))
    for place in range(0, tensor.numel(), 11):
        changed = tensor.clone()
        changed.view(-1)[place] += 1e-3
        assert torch.allclose((sketch(changed) - reference)[1:].abs(), torch.tensor(1e-3, dtype=torch.float64))
