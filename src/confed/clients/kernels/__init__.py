"""Compiled loops of local training.

The batched operations of `Cohort` serve every method, but each of them sends a (clients, rows, d) tensor through
memory, and threads wait for one another between them. Here a client's batches are taken one after another with its
rows in cache. The arithmetic is that of the batched form, and the tests hold the two together.
"""

from confed.clients.kernels.bilinear import put_scores, train_epoch
from confed.clients.kernels.dual import train_dual_epochs
from confed.clients.kernels.pairs import visit_pairs
from confed.clients.kernels.tower import train_tower_epochs

__all__ = ["put_scores", "train_dual_epochs", "train_epoch", "train_tower_epochs", "visit_pairs"]
