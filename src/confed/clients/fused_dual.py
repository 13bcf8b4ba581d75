"""Fed3CR's local training by a compiled loop (`kernels/`): which phases it computes, and how it is told.

The counterpart of `fused.py` for `DualTable` on a score s_j = vector · (C^E_j + V_j) + bias, whose parameters all take
one SGD step a batch; both terms, the transfer and its network are in closed form there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confed.clients.backbones import AdaptiveTransfer, Backbone, DualTable, LearnedTransfer, NoTransfer, Transfer
from confed.clients.backbones.dual import OWN
from confed.clients.kernels import train_dual_epochs
from confed.clients.objectives import BCE
from confed.clients.objectives.dual import ListNet, Orthogonal
from confed.clients.optim import Rate, per_client
from confed.clients.procedures import Phase
from confed.clients.sampling import LocalRows
from confed.random import Stream
from confed.threads import one_thread_for_compiled_products

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


def fusable_dual(backbone: Backbone, phase: Phase) -> bool:
    """Whether `train_dual` computes this phase."""
    if not isinstance(backbone, DualTable) or not _one_table(backbone) or len(phase.steps) != 1:
        return False
    step, transfer = phase.steps[0], backbone.transfer
    known = isinstance(transfer, NoTransfer | LearnedTransfer | AdaptiveTransfer)
    plain = step.optimiser == "sgd" and len(step.terms) == 1 and type(step.terms[0]) is BCE
    everything = set(step.rates) == {spec.name for spec in backbone.params}
    nets = [torch.as_tensor(step.rates[spec.name]) for spec in transfer.params if spec.name in step.rates]
    one_rate = all(torch.equal(rate, nets[0]) for rate in nets)
    dense = all(_known(term) for term in step.dense) and len({term.name for term in step.dense}) == len(step.dense)
    return known and plain and everything and one_rate and dense and not phase.weight_decay and phase.tolerance is None


def _one_table(backbone: DualTable) -> bool:
    form = backbone.backbone.bilinear
    return form is not None and len(form.tables) == 1 and len(form.biases) < 2 and form.offset is None


def _known(term: object) -> bool:
    listed = type(term) is ListNet and term.top_one == "softmax" and not term.divergence
    return listed or type(term) is Orthogonal


def train_dual(
    backbone: DualTable,
    params: Mapping[str, Tensor],
    tables: Mapping[str, Tensor],
    rows: LocalRows,
    liked: Tensor,
    phase: Phase,
    rates: Mapping[str, Rate],
    stream: Stream,
) -> dict[str, Tensor]:
    """`Cohort.train` on parameters that are changed in place; by term, means over the batches of the last epoch."""
    one_thread_for_compiled_products()
    form, transfer = backbone.backbone.bilinear, backbone.transfer
    assert form is not None
    clients = len(rows.clients)
    vectors = params[form.vector]
    biases = params[form.biases[0]] if form.biases else vectors.new_zeros(clients, 1)
    own = {name: per_client(rate, clients) for name, rate in rates.items()}
    weights = _weights(phase)
    losses = np.zeros((3, clients))
    train_dual_epochs(
        vectors.numpy(),
        biases.numpy(),
        tables[form.tables[0]].numpy(),
        tables[OWN].numpy(),
        *_net(transfer, params, vectors),
        _shape(transfer),
        weights,
        (
            own[form.vector],
            own[form.biases[0]] if form.biases else np.zeros(clients),
            own[form.tables[0]],
            own[OWN],
            own[transfer.params[0].name] if transfer.params else np.zeros(clients),
        ),
        phase.batch_decay,
        rows.local.numpy(),
        rows.labels.numpy(),
        np.stack([rows.order(epoch, stream) for epoch in range(phase.epochs)]),
        rows.lengths,
        phase.batch_size,
        liked.numpy(),
        losses,
    )
    named = dict(zip((BCE.name, ListNet.name, Orthogonal.name), torch.from_numpy(losses), strict=True))
    step = phase.steps[0]
    present = [*(term.name for term in step.terms), *(term.name for term in step.dense)]
    return {name: named[name] for name in present}


def _weights(phase: Phase) -> tuple[float, float, float]:
    """β_a, τ_a and β_o; 0 where a term is absent."""
    alike = temperature = apart = 0.0
    for term in phase.steps[0].dense:
        if isinstance(term, ListNet):
            alike, temperature = term.weight, term.temperature
        elif isinstance(term, Orthogonal):
            apart = term.weight
    return alike, temperature, apart


def _net(
    transfer: Transfer, params: Mapping[str, Tensor], like: Tensor
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Weights and biases of the layers; of a learned matrix, itself and nothing; without a transfer, nothing."""
    if isinstance(transfer, AdaptiveTransfer):
        layers = range(transfer.layers)
        weights = tuple(params[f"generator_weight_{layer}"].numpy() for layer in layers)
        return weights, tuple(params[f"generator_bias_{layer}"].numpy() for layer in layers)
    nothing = like.new_zeros(len(like), 0).numpy()
    matrices = [params[spec.name].numpy() for spec in transfer.params]
    return (*matrices,) or (nothing[:, :, None],), (nothing,)


def _shape(transfer: Transfer) -> tuple[bool, bool, bool, float, bool, bool]:
    """Whether there is a matrix, whether it is made, whether it reshapes the own table too; of one that is made: α,
    whether it is added to the identity, whether prototypes carry gradient.
    """
    if isinstance(transfer, AdaptiveTransfer):
        return True, True, False, transfer.scale, transfer.residual, not transfer.detach_prototypes
    learned = isinstance(transfer, LearnedTransfer)
    return learned, False, isinstance(transfer, LearnedTransfer) and transfer.unified, 0.0, False, False
