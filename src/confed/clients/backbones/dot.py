"""Matrix factorisation on a device: a private user vector times shared item rows."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from confed.clients.backbones.base import Backbone, Bilinear, ParamSpec, Renewal, inner
from confed.initial import normal


class Dot(Backbone):
    """s_i = p_u · V[i]."""

    bilinear = Bilinear("user", ("items",))

    def __init__(
        self,
        items: int,
        width: int,
        deviation: float,
        user_deviation: float | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        """`deviation` of all vectors at the start, but of the user's where that is given."""
        self.params = (
            ParamSpec("user", (width,), "user", "private", normal(user_deviation or deviation), renewal=renewal),
            ParamSpec("items", (items, width), "item", "shared", normal(deviation)),
        )

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        return inner(rows["items"], params["user"])
