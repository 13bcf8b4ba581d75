import numpy as np

from confed.runs.memory import peak_rss_mb, reset_peak


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
