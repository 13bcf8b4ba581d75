"""Supervised contrastive learning on item clusters: items of one category attract, all others repel.

`code` is the form of CoFedRec's published code: unit vectors, the logarithm inside the mean over positives, a mean over
anchors and the factor τ / 0.5 (D-15). With x the unit rows, c(i) the category of item i with n
items and S the sum of their unit rows,

    L = (τ / τ_b) · 1/m · Σ_i [ log Σ_{a≠i} exp(x_i·x_a / τ) − x_i · (S_c(i) − x_i) / ((n_c(i) − 1) τ) ].

`paper` is the form printed as Eq. 8: raw rows, the logarithm outside the mean over positives. The paper sums it over
all items, and the cross-entropy over all ratings (Eq. 9); here both are means, or the one would weigh a thousand times
more than it does beside the other in the paper.

Items alone in their category are no anchors, but everybody's negatives. Gradients are taken in strips of anchors: a
strip has all columns, so its softmax is complete and both of its products with the rows follow at once. No matrix of
items x items is held. Only where all of a few thousand items are anchors, the upper half of the symmetric matrix is
kept for a moment (at most 32 MB): two thirds of the time. Deviation: the code adds 1e-6 to denominators; here nothing
is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from confed.clients.objectives.dense import (
    Categories,
    DenseTerm,
    Whole,
    apart,
    side_by_side,
    through_unit,
    unit_rows,
)

Form = Literal["code", "paper"]

_STRIP, _LEAST, _STRIP_VALUES = 256, 64, 1 << 20
"""Anchors of a strip: with a few thousand items it stays in the second cache, of more items it takes fewer."""
_HALF_UP_TO = 4000
"""Items of which half a matrix of items x items may be kept for a moment."""
_BASE_TEMPERATURE = 0.5


class SupCon(DenseTerm):
    """weight · L on the item tables named, side by side."""

    name = "supcon"

    def __init__(
        self,
        tables: tuple[str, ...],
        weight: float,
        temperature: float,
        *,
        form: Form = "code",
        anchors: int = 1024,
        exact_up_to: int = 4000,
    ) -> None:
        """Above `exact_up_to` items a step draws `anchors` of them, without bias; denominators keep all items."""
        self.tables = tables
        self.weight = weight
        self.temperature = temperature
        self.anchors = anchors
        self.exact_up_to = exact_up_to
        self._form: Callable[[Tensor, Categories, float, Tensor], tuple[Tensor, Tensor]]
        self._form = code_form if form == "code" else paper_form

    def gradients(self, whole: Whole) -> tuple[Tensor, dict[str, Tensor]]:
        tables = side_by_side(whole.tables, self.tables)
        values = torch.zeros(len(tables), dtype=torch.float64)
        if "membership" not in whole.side:
            return values, {}
        categories = Categories(whole.side["membership"].long())
        items = len(categories.of)
        anchors = whole.drawn(items, self.anchors if items > self.exact_up_to else items)
        gradients = torch.empty_like(tables)
        for clients in _same_tables(whole.alike):
            value, gradient = self._form(tables[clients[0]], categories, self.temperature, anchors)
            values[clients] = self.weight * value.double()
            gradients[clients] = self.weight * gradient
        return values, apart(gradients, whole.tables, self.tables)


def _same_tables(alike: Tensor) -> list[Tensor]:
    """Positions of clients, one list for every distinct table."""
    groups = [torch.nonzero(alike == number)[:, 0] for number in torch.unique(alike[alike >= 0])]
    return [*groups, *torch.nonzero(alike < 0)]


def code_form(rows: Tensor, categories: Categories, temperature: float, anchors: Tensor) -> tuple[Tensor, Tensor]:
    """L and its gradient by `rows` (items, d), with the mean over `anchors` in place of that over all items."""
    unit, inverse = unit_rows(rows)
    chosen = anchors[categories.sizes[anchors] > 1]
    if len(anchors) == len(unit) <= _HALF_UP_TO:
        logarithms, gradient = _denominators_of_all(unit, chosen, temperature)
        attraction, likeness = _attraction_of_all(unit, categories)
    else:
        logarithms, gradient = _denominators(unit, chosen, temperature)
        attraction, likeness = _attraction(unit, categories, chosen)
    scale = temperature / _BASE_TEMPERATURE / len(anchors)
    value = scale * (logarithms.sum() - likeness / temperature)
    gradient = (gradient - attraction) * (scale / temperature)
    return value, through_unit(gradient, unit, inverse)


def _attraction(unit: Tensor, categories: Categories, anchors: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient by unit rows of Σ_i x_i · (mean of its partners) over the anchors i, and that sum."""
    own, partners = unit[anchors], categories.partners(unit)
    others = (categories.sums(unit)[anchors] - own) / partners[anchors]
    anchored = torch.zeros_like(unit).index_copy_(0, anchors, own)
    attraction = (categories.sums(anchored) - anchored) / partners
    return attraction.index_add_(0, anchors, others), (own * others).sum()


def _attraction_of_all(unit: Tensor, categories: Categories) -> tuple[Tensor, Tensor]:
    """`_attraction` where all items are anchors: everybody is drawn as an anchor and draws as a partner alike."""
    others = (categories.sums(unit) - unit) / categories.partners(unit)
    return 2.0 * others, (unit * others).sum()


def _denominators(unit: Tensor, anchors: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """log Σ_{a≠i} exp(x_i·x_a / τ) of the anchors i, and τ times the gradient of their sum by the unit rows.

    Exponents lie within ±1/τ, so nothing overflows and no maximum has to be subtracted.
    """
    gradient = torch.zeros_like(unit)
    logarithms = unit.new_empty(len(anchors))
    size = min(max(_STRIP_VALUES // len(unit), _LEAST), _STRIP)
    for start in range(0, len(anchors), size):
        strip = anchors[start : start + size]
        own = unit[strip]
        weights = ((own / temperature) @ unit.T).exp_()
        weights[torch.arange(len(strip)), strip] = 0.0
        sums = weights.sum(dim=1)
        logarithms[start : start + size] = sums.log()
        gradient.index_add_(0, strip, (weights @ unit) / sums[:, None])
        gradient.addmm_(weights.T, own / sums[:, None])
    return logarithms, gradient


def _denominators_of_all(unit: Tensor, anchors: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """`_denominators` where nearly all items are anchors: exp(x_i·x_a / τ) is taken once for (i, a) and (a, i).

    The gradient by x_i is Σ_a exp(x_i·x_a / τ) (1/s_i + 1/s_a) x_a with the sums s of the anchors, 1/s = 0 for others.
    """
    items, scaled = len(unit), unit / temperature
    sums = unit.new_zeros(items)
    halves = []
    for start in range(0, items, _STRIP):
        end = min(start + _STRIP, items)
        half = (scaled[start:end] @ unit[start:].T).exp_()
        half[:, : end - start].fill_diagonal_(0.0)
        sums[start:end] += half.sum(dim=1)
        sums[end:] += half[:, end - start :].sum(dim=0)
        halves.append((start, end, half))
    shares = torch.zeros_like(sums).index_copy_(0, anchors, sums[anchors].reciprocal())
    gradient = torch.zeros_like(unit)
    for start, end, half in halves:
        half.mul_(shares[start:end, None] + shares[None, start:])
        gradient[start:end].addmm_(half, unit[start:])
        gradient[end:].addmm_(half[:, end - start :].T, unit[start:end])
    return sums[anchors].log(), gradient


def paper_form(rows: Tensor, categories: Categories, temperature: float, anchors: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 8 as a mean over `anchors`, and its gradient by `rows`: each anchor's softmax over all items, less that over
    its category.
    """
    chosen = anchors[categories.sizes[anchors] > 1]
    value, gradient = rows.new_zeros(()), torch.zeros_like(rows)
    for start in range(0, len(chosen), _STRIP):
        strip = chosen[start : start + _STRIP]
        own = rows[strip]
        scores = (own / temperature) @ rows.T
        scores[torch.arange(len(strip)), strip] = -torch.inf
        among_all = torch.log_softmax(scores, dim=1)
        foreign = categories.of[strip, None] != categories.of[None, :]
        among_own = among_all.masked_fill(foreign, -torch.inf)
        share = torch.logsumexp(among_own, dim=1)
        value = value - (share - (categories.sizes[strip] - 1).to(rows.dtype).log()).sum()
        pull = among_all.exp() - (among_own - share[:, None]).exp()
        gradient.index_add_(0, strip, pull @ rows)
        gradient.addmm_(pull.T, own)
    return value / len(anchors), gradient / (len(anchors) * temperature)
