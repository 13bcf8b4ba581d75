"""A company that reads a user's row and writes it again: ETL's autoencoder with distributions (D-41).

    h = ReLU(A·dropout(x) + a),   μ = B·h + b + e_u,   σ = softplus(C·h + c) + 1e-4
    z = μ + σ ⊙ ε in training, μ in scoring;   x̂ = D·z + d
    ℓ_R = mean over a batch's users of Σ_i BCE(x̂_i, x_i)

x is the user's row of zeros and ones in the domain, and e_u the company's own embedding of the user. Nothing of another
domain is read or written: no cross reconstruction, no map W, no shared e_u. ℓ_P and ℓ_C are those of FPPDM, on the
points [μ ; σ] as the batch's dropout leaves them. A user without interactions has an empty row: nothing is
reconstructed, but ℓ_P moves his e_u.

What the paper and D-41 leave open, and how it is read here:
- The two heads share the first layer. e_u enters μ only, so that all users without interactions have the same σ.
- The decoder is one linear layer, on z itself. ETL's own code has Linear–ReLU–Linear on ReLU(f).
- There is no prior: ETL's discriminators are left out, as D-41 has it, and nothing but ℓ_P keeps σ from shrinking.
- Weight decay is an L2 term: torch's Adam adds it to the gradient, of all parameters, in every step. In ETL's code it
  stands beside the sum over a batch's users, here beside their mean, so it is divided by their number. For Adam, which
  does not mind the scale of a loss, that is the same step; 0.001 beside a mean would be 256 times as strong.

Rows are never dense (`confed.models.binary_rows`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from confed.data.split import TrainingData
from confed.initial import Layers, linear_layer, normal, started, uniform
from confed.models.binary_rows import reconstruction, summed
from confed.models.distributions import points
from confed.models.learner import Learner
from confed.models.preference import Batch, PreferenceSilo, Pull
from confed.models.silo import Shared
from confed.random import keyed, standard_normal
from confed.scoring import Scorer


class AutoencoderSilo(PreferenceSilo):
    """An encoder with two heads, a table of users and a linear decoder."""

    def __init__(self, config: Any, pull: Pull, data: TrainingData, shared: Shared, seed: int, dtype: str) -> None:
        params = started(seed, _layers(config, data.users, data.items))
        learner = Learner(params, config.learning_rate, getattr(torch, dtype))
        super().__init__(data, shared, seed, learner, pull, dim=config.dim, local_epochs=config.local_epochs)
        self.config = config
        self.rows = data.positives.unique()
        self.active = torch.from_numpy(np.flatnonzero(self.rows.lengths))

    def steps(self) -> int:
        return max(-(-len(self.active) // int(self.config.batch_size)), 1)

    def epoch(self, number: int, epoch: int, batches: list[Batch]) -> float:
        order = torch.randperm(len(self.active), generator=keyed(self.seed, "shuffle", number, epoch))
        shuffled = torch.split(self.active[order], self.config.batch_size)
        total = sum(self.train_batch(batch, users) * len(users) for batch, users in zip(batches, shuffled, strict=True))
        return total / len(self.active)

    def train_batch(self, batch: Batch, users: Tensor) -> float:
        """One step; ℓ_R before it."""
        dropout, noise = (keyed(self.seed, purpose, batch.round, batch.step) for purpose in ("dropout", "noise"))
        encoded = self.encode(torch.cat([users, batch.unheard]), dropout)
        heard, unheard = torch.split(encoded, [len(users), len(batch.unheard)])
        mean, deviation = torch.split(heard, self.dim, dim=1)
        logits = self.decode(mean + deviation * standard_normal(mean, noise))
        loss = reconstruction(logits, self.rows.take(users.numpy())) / len(users)
        self.learner.adam.param_groups[0]["weight_decay"] = self.config.weight_decay / len(users)
        self.step(loss + self.pulled(batch, users, heard, unheard))
        return float(loss.detach())

    def encode(self, users: Tensor, dropout: torch.Generator | None = None) -> Tensor:
        """Points [μ ; σ] of `users`, with ones struck out by `dropout` if it is given."""
        params = self.params
        rows = self.rows.take(users.numpy())
        hidden = torch.relu(summed(rows, params["input"], self.config.dropout, dropout) + params["input_bias"])
        mean = functional.linear(hidden, params["mean"], params["mean_bias"])
        raw = functional.linear(hidden, params["deviation"], params["deviation_bias"])
        return points(mean + params["users"].index_select(0, users), raw)

    def decode(self, latent: Tensor) -> Tensor:
        """(n, items) logits."""
        return functional.linear(latent, self.params["output"], self.params["output_bias"])

    def user_points(self) -> Tensor:
        return self.encode(torch.arange(self.data.users))

    def item_scorer(self, users: Tensor) -> Scorer:
        means = users[:, : self.dim]

        @torch.no_grad()
        def score(clients: Tensor) -> Tensor:
            return self.decode(means.index_select(0, clients))

        return score


def _layers(config: Any, users: int, items: int) -> Layers:
    dim = config.dim
    return {
        "users": ((users, dim), normal(config.init_deviation)),
        "input": ((items, dim), uniform(items**-0.5)),
        "input_bias": ((dim,), uniform(items**-0.5)),
        **linear_layer("mean", dim, dim),
        **linear_layer("deviation", dim, dim),
        **linear_layer("output", dim, items),
    }
