"""Binary cross-entropy on implicit feedback, batch mean per client."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from confed.clients.objectives.base import Batch, Term


class BCE(Term):
    """bce(y, s) = softplus(s) − y·s. In logit space a wrong, saturated prediction keeps its gradient (D-1)."""

    name = "cross-entropy"

    def value(self, batch: Batch) -> Tensor:
        loss = functional.binary_cross_entropy_with_logits(
            batch.logits, batch.labels, weight=batch.weights, reduction="none"
        )
        return loss.sum(dim=1)


class SaturatingBCE(Term):
    """The published form: a float32 probability first. Above a logit of about 16.6 the gradient is exactly 0."""

    name = "cross-entropy"

    def value(self, batch: Batch) -> Tensor:
        probability = torch.sigmoid(batch.logits.float())
        if bool(probability.isnan().any()):  # which torch refuses: whoever looks at the loss finds it there
            return batch.logits.sum(dim=1)
        loss = functional.binary_cross_entropy(probability, batch.labels.float(), reduction="none")
        return (loss.to(batch.logits.dtype) * batch.weights).sum(dim=1)
