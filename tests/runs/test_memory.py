import numpy as np
import pytest

from confed.errors import ConfedError
from confed.methods.registry import method_named
from confed.runs.memory import peak_rss_mb, reset_peak, within_memory


def test_the_peak_is_that_of_the_last_run():
    reset_peak()
    before = peak_rss_mb()
    block = np.ones(200 << 17)  # 200 MiB
    with_block = peak_rss_mb()
    assert with_block >= before + 150
    del block
    assert peak_rss_mb() > with_block - 20  # what was used once stays counted
    reset_peak()
    assert peak_rss_mb() <= with_block - 100


@pytest.mark.parametrize(
    "refusal",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8000000000000 bytes"),
        RuntimeError("Storage size calculation overflowed with sizes=[60, 4611686018427387904]"),
        ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."),
    ],
)
def test_what_does_not_fit_is_said_of_the_option_that_is_too_large(refusal):
    config = method_named("mf").config(None, {"batch_size": 2**31 - 1})
    said = r"memory of this machine: lower `batch_size` \(2,147,483,647\)$"
    with pytest.raises(ConfedError, match=said), within_memory(config):
        raise refusal
    usual = method_named("mf").config(None, {})
    with pytest.raises(ConfedError, match="use fewer users or items"), within_memory(usual):
        raise refusal


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="a bug"), within_memory(method_named("mf").config(None, {})):
        raise RuntimeError("a bug")
