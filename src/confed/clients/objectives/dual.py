"""Fed3CR's terms on a client's two views of the items: the shared table as it looks at it, C^E, and its own, V.

Consistency: both views should rank items alike. `ListNet` is the paper's L_a; `AlikeRows` (L_s) and `Contrast` (L_c)
are what it is compared with. Complementarity: they should not say the same. `Orthogonal` is the paper's L_o; `FarApart`
(L_2) and `Independent` (L_m) are what it is compared with. The formulas of the four others, and the scale of L_o, are
ours: the paper prints none (D-23, D-28).

Every term gives its gradient by both whole tables. What is nonlinear in a few numbers per item or pair is left to
autograd; products with whole tables are written out.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from confed.clients.objectives.dense import DenseTerm, Whole, through_unit, unit_rows

TopOne = Literal["softmax", "shifted"]

_SAMPLE = 256
"""Items that pairwise terms look at in a step."""
_CONTRAST_TEMPERATURE = 0.2
_SMALLEST = 1e-12
"""Probabilities and distances are kept above this before a logarithm or a division."""


class PairTerm(DenseTerm):
    """weight · a function of the two tables."""

    def __init__(self, weight: float, tables: tuple[str, str] = ("enhanced", "own")) -> None:
        self.weight = weight
        self.tables = tables

    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        shared, own = (whole.tables[name] for name in self.tables)
        values, by_shared, by_own = self.pair(shared, own, whole)
        gradients = dict(zip(self.tables, (by_shared * self.weight, by_own * self.weight), strict=True))
        return self.weight * values.double(), gradients

    @abstractmethod
    def pair(self, shared: Tensor, own: Tensor, whole: Whole) -> tuple[Tensor, Tensor, Tensor]:
        """(clients,) values, and the gradients by the two tables (clients, items, d)."""


class ListNet(PairTerm):
    """L_a = − ½ Σ_j P_j log Q_j − ½ Σ_j Q_j log P_j over all items.

    P and Q are the top-one probabilities of the items in the two views: softmax_j(cos(p, x_j) / τ) with the view's
    prototype p, the mean of its rows of training positives; or, `shifted`, (1 + cos) / Σ (1 + cos). The paper divides
    raw cosines by their sum, which may be negative or zero (D-22). `divergence` drops the entropies of P and Q, which
    the cross-entropy makes smaller beside what it is meant for; what is left is the symmetric Kullback-Leibler
    divergence.
    """

    name = "consistency"

    def __init__(
        self, weight: float, temperature: float = 1.0, top_one: TopOne = "softmax", *, divergence: bool = False
    ) -> None:
        super().__init__(weight)
        self.temperature = temperature
        self.top_one = top_one
        self.divergence = divergence

    def pair(self, shared: Tensor, own: Tensor, whole: Whole) -> tuple[Tensor, Tensor, Tensor]:
        weights = whole.positives.to(own.dtype)
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1.0)
        views = [_Likeness(table, weights) for table in (shared, own)]
        cosines = [view.cosines.requires_grad_() for view in views]
        with torch.enable_grad():
            values = self._disagreement(*(self._logarithms(cosine) for cosine in cosines))
            by_cosines = torch.autograd.grad(values.sum(), cosines)
        by_shared, by_own = (view.gradient(by) for view, by in zip(views, by_cosines, strict=True))
        return values.detach(), by_shared, by_own

    def _logarithms(self, cosines: Tensor) -> Tensor:
        if self.top_one == "softmax":
            return torch.log_softmax(cosines / self.temperature, dim=1)
        chances = (1.0 + cosines).clamp(min=_SMALLEST)
        return chances.log() - chances.sum(dim=1, keepdim=True).log()

    def _disagreement(self, log_shared: Tensor, log_own: Tensor) -> Tensor:
        shared, own = log_shared.exp(), log_own.exp()
        if self.divergence:
            return 0.5 * ((own - shared) * (log_own - log_shared)).sum(dim=1)
        return -0.5 * (own * log_shared + shared * log_own).sum(dim=1)


class _Likeness:
    """cos(p, x_j) of all rows x_j of a table with p, the mean of its rows weighted by `weights` (clients, items)."""

    def __init__(self, table: Tensor, weights: Tensor) -> None:
        self.weights = weights
        self.unit, self.inverse = unit_rows(table)
        self.mean, self.mean_inverse = unit_rows(torch.bmm(weights[:, None], table))
        self.cosines = torch.bmm(self.unit, self.mean.mT)[:, :, 0]

    def gradient(self, by_cosines: Tensor) -> Tensor:
        """By the table, given that by the cosines."""
        by_rows = through_unit_along(by_cosines, self.cosines.detach(), self.mean, self.unit, self.inverse)
        by_mean = through_unit(torch.bmm(by_cosines[:, None], self.unit), self.mean, self.mean_inverse)
        return by_rows.baddbmm_(self.weights[:, :, None], by_mean)


def through_unit_along(weights: Tensor, cosines: Tensor, target: Tensor, unit: Tensor, inverse: Tensor) -> Tensor:
    """`through_unit` of the gradient weights_j · target (clients, 1, d), whose part along row j is known: a cosine."""
    scaled = weights[:, :, None] * inverse
    return (scaled * target).sub_(scaled * cosines[:, :, None] * unit)


class Orthogonal(PairTerm):
    """L_o = 1/d · Σ_ab E_ab², E = (C^E)^T V / m: the features of the two views are uncorrelated over the m items.

    The paper prints E without the division by m, with which L_o would be about d·m at the start and drown everything;
    its figure 7 cuts entries at 0.003, which fits E as it stands here (D-23).
    """

    name = "complementarity"

    def pair(self, shared: Tensor, own: Tensor, whole: Whole) -> tuple[Tensor, Tensor, Tensor]:
        _, items, width = own.shape
        correlation = correlations(shared, own)
        scaled = correlation * (2.0 / (width * items))
        return correlation.square().sum(dim=(1, 2)) / width, torch.bmm(own, scaled.mT), torch.bmm(shared, scaled)


def correlations(shared: Tensor, own: Tensor) -> Tensor:
    """(clients, d, d): E, how each feature of one view goes with each of the other."""
    return torch.bmm(shared.mT, own) / own.shape[1]


class AlikeRows(PairTerm):
    """L_s = mean_j (1 − cos(C^E_j, V_j))."""

    name = "consistency"

    def pair(self, shared: Tensor, own: Tensor, whole: Whole) -> tuple[Tensor, Tensor, Tensor]:
        items = own.shape[1]
        (one, one_inverse), (other, other_inverse) = unit_rows(shared), unit_rows(own)
        cosines = (one * other).sum(dim=2)
        by_shared = through_unit(-other / items, one, one_inverse)
        return 1.0 - cosines.mean(dim=1), by_shared, through_unit(-one / items, other, other_inverse)


class FarApart(PairTerm):
    """L_2 = − mean_j ‖C^E_j − V_j‖² / d: unbounded below, so its weight has to stay small."""

    name = "complementarity"

    def pair(self, shared: Tensor, own: Tensor, whole: Whole) -> tuple[Tensor, Tensor, Tensor]:
        difference = shared - own
        gradient = difference * (-2.0 / difference[0].numel())
        return -difference.square().mean(dim=(1, 2)), gradient, -gradient


class SampledPairTerm(PairTerm):
    """A term on pairs of items: on a sample of them, the same for all clients, drawn anew at every step."""

    def pair(self, shared: Tensor, own: Tensor, whole: Whole) -> tuple[Tensor, Tensor, Tensor]:
        chosen = whole.drawn(own.shape[1], _SAMPLE)
        rows = [table.index_select(1, chosen).requires_grad_() for table in (shared, own)]
        with torch.enable_grad():
            values = self.sampled(*rows)
            by_rows = torch.autograd.grad(values.sum(), rows)
        by_shared, by_own = (torch.zeros_like(own).index_copy_(1, chosen, gradient) for gradient in by_rows)
        return values.detach(), by_shared, by_own

    @abstractmethod
    def sampled(self, shared: Tensor, own: Tensor) -> Tensor:
        """(clients,) values, from rows (clients, sample, d)."""


class Contrast(SampledPairTerm):
    """L_c: InfoNCE. An item's row in one view should be closest to the same item's in the other, both ways."""

    name = "consistency"

    def sampled(self, shared: Tensor, own: Tensor) -> Tensor:
        likeness = torch.bmm(functional.normalize(shared, dim=2), functional.normalize(own, dim=2).mT)
        scores = likeness / _CONTRAST_TEMPERATURE
        ways = [torch.log_softmax(scores, dim=dim).diagonal(dim1=1, dim2=2).mean(dim=1) for dim in (1, 2)]
        return -0.5 * (ways[0] + ways[1])


class Independent(SampledPairTerm):
    """L_m: the Hilbert-Schmidt independence criterion of the two views, with Gaussian kernels of median width."""

    name = "complementarity"

    def sampled(self, shared: Tensor, own: Tensor) -> Tensor:
        one, other = _centred(_gaussian(shared)), _gaussian(own)
        return (one * other).sum(dim=(1, 2)) / (shared.shape[1] - 1) ** 2


def _gaussian(rows: Tensor) -> Tensor:
    """(clients, n, n): exp(− ‖x − y‖² / median), a kernel with ones on its diagonal."""
    lengths = rows.square().sum(dim=2)
    distances = (lengths[:, :, None] + lengths[:, None, :] - 2.0 * torch.bmm(rows, rows.mT)).clamp(min=0.0)
    median = distances.detach().flatten(1).median(dim=1).values.clamp(min=_SMALLEST)
    return (-distances / median[:, None, None]).exp()


def _centred(kernel: Tensor) -> Tensor:
    rows = kernel.mean(dim=1, keepdim=True)
    return kernel - rows - rows.mT + rows.mean(dim=2, keepdim=True)
