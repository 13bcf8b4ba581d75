"""Virtual ratings: random items with random labels among the real ones, so that an upload says less about its sender.

At ratio ρ a client adds, every round, ⌊ρ·|D_u|⌋ items drawn from its pool of training negatives, each a positive or a
negative by a fair coin (D-18).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confed.data.split import TrainingData
from confed.ragged import Ragged
from confed.random import Stream

Ints = NDArray[np.int64]


def draw_virtual(data: TrainingData, clients: Ints, ratio: float, stream: Stream) -> tuple[Ragged, NDArray[np.bool_]]:
    """The items of each client, and for each whether it is passed off as a positive."""
    # The small number guards against 0.3 · 10 = 2.9999…
    lengths = np.floor(ratio * data.positives.lengths[clients] + 1e-9).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    row = np.repeat(np.arange(len(clients)), lengths)
    slot = np.arange(offsets[-1]) - offsets[row]
    excluded = data.excluded.take(clients)
    pool = data.items - excluded.lengths
    who = data.ids[clients][row]
    ranks = stream.integers(who, 2 * slot, pool[row])
    coins = stream.integers(who, 2 * slot + 1, 2) == 1
    return Ragged(offsets, excluded.outside(row, ranks)), coins
