"""Chunks side by side: one thread for each core, one core for each chunk.

The operations of a chunk are too small to share among threads, and many; whole chunks are not. Each chunk runs on a
single thread, so that results do not depend on the number of cores. Chunks are handed out a few ahead, so that only a
few finished ones wait to be collected, and results come in the order of the chunks. Whoever collects them has one
thread too: a second one of OpenMP, once used, waits for more work on a core that a chunk needs.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

Chunk = TypeVar("Chunk")
Done = TypeVar("Done")

_AHEAD = 4
"""Chunks per thread that are handed out and not yet collected."""


def in_parallel(work: Callable[[Chunk], Done], chunks: Iterable[Chunk]) -> Iterator[Done]:
    """`work` on every chunk, on as many threads as torch is allowed to use."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield from map(work, chunks)
        return
    waiting = iter(chunks)
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    torch.set_num_threads(1)
    try:
        handed_out: deque[Future[Done]] = deque(pool.submit(work, one) for one in islice(waiting, _AHEAD * threads))
        while handed_out:
            done = handed_out.popleft().result()
            handed_out.extend(pool.submit(work, one) for one in islice(waiting, 1))
            yield done
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


@cache
def one_thread_for_compiled_products() -> None:
    """Chunks of clients run side by side already; threads inside their small matrix products would only wait.

    Compiled code takes scipy's BLAS, which nothing else in the package gives several threads. Its wheel has a copy of
    its own; where it shares one with others, they get one thread as well.
    """
    importlib.import_module("scipy.linalg.cython_blas")
    libraries = [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]
    for library in [one for one in libraries if "scipy.libs" in str(one.filepath)] or libraries:
        library.set_num_threads(1)
