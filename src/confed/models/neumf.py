"""NeuMF: neural collaborative filtering in one place (He et al. 2017; decisions.md "neumf").

    gmf      s = h · (p_u ⊙ q_i) + b
    mlp      s = h · z_L + b,                      z_0 = [p_u ; q_i],  z_l = ReLU(W_l z_{l−1} + c_l)
    neumf    s = h · [p^G_u ⊙ q^G_i ; z_L] + b     with embeddings of their own for both branches

Trained on the mean cross-entropy of every positive and q sampled negatives for each, with Adam. Deviations
from the official code: both branches have width d and the tower is [2d, d, d/2, d/4] (D-7; official: GMF
width 8); the hidden layers start uniform in ±1/√fan_in as in torch; no pre-training of the branches; the
reported epoch is the protocol's choice (officially the best on the test set). As there, the output layer
starts Lecun-uniform with bias 0. Negatives come from outside `TrainingData.excluded`, so the protocol decides
whether they avoid the held-out items; officially they do not. Who has nothing to train on, a cold user, is scored with
the means of all others' vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from confed.data.split import TrainingData
from confed.initial import Layers, normal, started, uniform, zeros
from confed.models.base import PointwiseConfig, PointwiseModel
from confed.models.learner import batches_of
from confed.scoring import Scorer


class NeuMFConfig(PointwiseConfig):
    variant: Literal["gmf", "mlp", "neumf"] = "neumf"
    """Which branches the model has."""

    @property
    def branches(self) -> tuple[str, ...]:
        return ("gmf", "mlp") if self.variant == "neumf" else (self.variant,)

    @property
    def tower(self) -> tuple[int, ...]:
        """[2d, d, d/2, d/4] with the input width left out (D-7)."""
        return (self.dim, max(self.dim // 2, 1), max(self.dim // 4, 1)) if "mlp" in self.branches else ()


class NeuMFModel(PointwiseModel):
    """Two embedding tables per branch, a tower and an output layer."""

    def __init__(self, config: NeuMFConfig, data: TrainingData, seed: int, dtype: str) -> None:
        params = started(seed, _layers(config, data.users, data.items))
        super().__init__(data, seed, dtype, params, config)
        self.branches = config.branches
        self.depth = len(config.tower)
        self.hidden = config.dim
        for value in self.params.values():
            value.requires_grad_()

    def epoch(self, number: int) -> float:
        users, items, labels = self.rows(number)
        logits = torch.empty_like(labels)
        for *batch, before in batches_of(self.batch_size, users, items, labels, logits):
            before.copy_(self.step(*batch))
        return float(functional.binary_cross_entropy_with_logits(logits, labels))

    def step(self, users: Tensor, items: Tensor, labels: Tensor) -> Tensor:
        """One Adam step on the batch-mean cross-entropy; the logits before it."""
        logits = self.logits(self._look_up("users", users), self._look_up("items", items))
        loss = functional.binary_cross_entropy_with_logits(logits, labels)
        self.learner.step(loss)
        return logits.detach()

    def logits(self, users: Mapping[str, Tensor], items: Mapping[str, Tensor]) -> Tensor:
        """Scores of embeddings (…, d), one of each branch; the axes in front of d broadcast."""
        head = self.params["head"]
        score = self.params["head_bias"]
        if "gmf" in self.branches:
            score = score + (users["gmf"] * head[: self.hidden] * items["gmf"]).sum(dim=-1)
            head = head[self.hidden :]
        if "mlp" in self.branches:
            score = score + self._tower(users["mlp"], items["mlp"]) @ head
        return score

    def _tower(self, users: Tensor, items: Tensor) -> Tensor:
        """W_0 [p ; q] is computed as W_p p + W_q q, so that scoring all pairs multiplies each side once."""
        user_side, item_side = torch.split(self.params["weight_0"], self.hidden, dim=1)
        hidden = torch.relu(functional.linear(users, user_side, self.params["bias_0"]) + items @ item_side.T)
        for layer in range(1, self.depth):
            weight, bias = self.params[f"weight_{layer}"], self.params[f"bias_{layer}"]
            hidden = torch.relu(functional.linear(hidden, weight, bias))
        return hidden

    def _look_up(self, side: Literal["users", "items"], index: Tensor) -> dict[str, Tensor]:
        return {branch: self.params[f"{branch}_{side}"].index_select(0, index) for branch in self.branches}

    def scorer(self) -> Scorer:
        items = {branch: self.params[f"{branch}_items"] for branch in self.branches}
        rows = {branch: self.for_scoring(self.params[f"{branch}_users"].detach()) for branch in self.branches}

        @torch.no_grad()
        def score(clients: Tensor) -> Tensor:
            users = {branch: table.index_select(0, clients)[:, None] for branch, table in rows.items()}
            return self.logits(users, items)

        return score


def _layers(config: NeuMFConfig, users: int, items: int) -> Layers:
    layers: Layers = {}
    for branch in config.branches:
        layers[f"{branch}_users"] = (users, config.dim), normal(config.init_deviation)
        layers[f"{branch}_items"] = (items, config.dim), normal(config.init_deviation)
    inputs = 2 * config.dim
    for layer, outputs in enumerate(config.tower):
        layers[f"weight_{layer}"] = (outputs, inputs), uniform(inputs**-0.5)
        layers[f"bias_{layer}"] = (outputs,), uniform(inputs**-0.5)
        inputs = outputs
    head = (config.dim if "gmf" in config.branches else 0) + (inputs if config.tower else 0)
    layers["head"] = (head,), uniform((3.0 / head) ** 0.5)
    layers["head_bias"] = (1,), zeros
    return layers
