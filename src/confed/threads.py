"""Chunks side by side: one thread for each core, one core for each chunk.

The operations of a chunk are too small to share among threads, and many; whole chunks are not. Each chunk runs on a
single thread, so that results do not depend on the number of cores. Work is handed out in waves, so that only a few
finished chunks wait to be collected, and results come in the order of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

Chunk = TypeVar("Chunk")
Done = TypeVar("Done")

_WAVE = 4
"""Chunks per thread in a wave."""


def in_parallel(work: Callable[[Chunk], Done], chunks: Iterable[Chunk]) -> Iterator[Done]:
    """`work` on every chunk, on as many threads as torch is allowed to use."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield from map(work, chunks)
        return
    waiting = iter(chunks)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            while wave := list(islice(waiting, _WAVE * threads)):
                yield from pool.map(work, wave)
    finally:
        torch.set_num_threads(threads)  # the setting is partly global: workers change it for everybody
