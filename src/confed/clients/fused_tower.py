"""FedNCF's local training by a compiled loop (`kernels/`): which phases it computes, and how it is told.

The counterpart of `fused.py` for `NeuMF` with a tower, whose parameters all take one step of Adam a batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from confed.clients.backbones import Backbone, NeuMF, ParamSpec
from confed.clients.kernels import train_tower_epochs
from confed.clients.objectives import BCE
from confed.clients.optim import Adam, Rate, per_client
from confed.clients.procedures import Phase
from confed.clients.sampling import LocalRows
from confed.random import Stream
from confed.threads import one_thread_for_compiled_products


def fusable_tower(backbone: Backbone, phase: Phase) -> bool:
    """Whether `train_tower` computes this phase."""
    if not isinstance(backbone, NeuMF) or not backbone.tower or len(phase.steps) != 1:
        return False
    step = phase.steps[0]
    rates = [torch.as_tensor(rate) for rate in step.rates.values()]
    return (
        step.optimiser == "adam"
        and len(step.terms) == 1
        and type(step.terms[0]) is BCE
        and set(step.rates) == {spec.name for spec in backbone.params}
        and all(torch.equal(rate, rates[0]) for rate in rates)
        and phase.plain
        and not phase.dense
    )


def train_tower(
    backbone: NeuMF,
    params: Mapping[str, Tensor],
    tables: Mapping[str, Tensor],
    rows: LocalRows,
    phase: Phase,
    rate: Rate,
    stream: Stream,
) -> dict[str, Tensor]:
    """`Cohort.train` on parameters that are changed in place; by term, means over the batches of the last epoch."""
    one_thread_for_compiled_products()
    clients, adam = len(rows.clients), Adam()
    names = [spec.name for spec in _in_order(backbone)]
    flat = torch.cat([params[name].flatten(1) for name in names], dim=1)
    mlp = tables["mlp_items"]
    gmf = tables["gmf_items"] if backbone.has_gmf else mlp.new_empty(*mlp.shape[:2], 0)
    losses = np.zeros((1, clients))
    train_tower_epochs(
        flat.numpy(),
        gmf.numpy(),
        mlp.numpy(),
        np.array(backbone.tower),
        per_client(rate, clients),
        (adam.beta1, adam.beta2, adam.epsilon),
        rows.local.numpy(),
        rows.labels.numpy(),
        np.stack([rows.order(epoch, stream) for epoch in range(phase.epochs)]),
        rows.lengths,
        (rows.local.amax(dim=1) + 1).numpy(),
        phase.batch_size,
        losses,
    )
    sizes = [params[name][0].numel() for name in names]
    for name, part in zip(names, torch.split(flat, sizes, dim=1), strict=True):
        params[name].copy_(part.view_as(params[name]))
    return {BCE.name: torch.from_numpy(losses[0])}


def _in_order(backbone: NeuMF) -> list[ParamSpec]:
    """All parameters but the tables, as the loop wants them: users' vectors, the layers, the head."""
    return [*backbone.named(role="user"), *backbone.named(role="net")]
