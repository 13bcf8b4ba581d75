"""Training negatives: items drawn against a user's positives, from outside `TrainingData.excluded`.

Every draw is keyed by the user's id, so that it does not matter who else is held in the same place.
"""

from __future__ import annotations

import numpy as np

from confed.data.interactions import Ints
from confed.data.split import TrainingData
from confed.errors import ConfedError
from confed.random import Stream


def check_negative_pool(data: TrainingData, negatives: int) -> None:
    """Every user must leave `negatives` items to draw from."""
    pool = data.items - data.excluded.lengths
    short, least = int((pool < negatives).sum()), int(pool.min())
    if short:
        fewer = f"draw fewer (--set train_negatives={least}), " if least else ""
        raise ConfedError(
            f"{short:,} of {len(pool):,} users have so many of the {data.items:,} items that fewer than {negatives} "
            f"are left to draw as training negatives: {fewer}leave these users out, or take a method that draws none, "
            f"such as ease"
        )


def draw_negatives(data: TrainingData, clients: Ints, count: int, stream: Stream) -> Ints:
    """(positives, count): negatives of every positive of `clients`, one client after another; distinct in each row."""
    lengths = data.positives.lengths[clients]
    row = np.repeat(np.arange(len(clients)), lengths)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    excluded = data.excluded.take(clients)
    pool = data.items - excluded.lengths
    ranks = stream.distinct(data.ids[clients][row], slot, pool[row], count)
    return excluded.outside(np.repeat(row, count), ranks.reshape(-1)).reshape(len(row), count)
