import threading
import time

import pytest
import torch

from confed.threads import in_parallel


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_chunks(threads):
    def work(chunk):
        time.sleep(0.002 * (chunk % 3))
        return chunk * 10

    assert list(in_parallel(work, iter(range(40)))) == [c * 10 for c in range(40)]
    assert torch.get_num_threads() == threads


def test_every_chunk_has_one_torch_thread_and_chunks_run_side_by_side(threads):
    together = threading.Barrier(threads, timeout=20)

    def work(chunk):
        together.wait()  # passes only if as many chunks run at once
        return torch.get_num_threads()

    assert set(in_parallel(work, range(threads))) == {1}


def test_an_error_in_a_chunk_reaches_the_caller_and_the_setting_is_restored(threads):
    def work(chunk):
        raise ValueError(f"chunk {chunk}")

    with pytest.raises(ValueError, match="chunk 0"):
        list(in_parallel(work, range(5)))
    assert torch.get_num_threads() == threads


def test_only_a_few_chunks_are_taken_ahead(threads):
    taken = []

    def chunks():
        for chunk in range(100):
            taken.append(chunk)
            yield chunk

    results = in_parallel(lambda chunk: chunk, chunks())
    next(results)
    assert len(taken) <= 4 * threads + 1  # the one that was collected
    results.close()
