"""Matrix factorisation whose scores may have a share of what the client made of its table last (PerFedRec)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from confed.clients.backbones.base import Backbone, ParamSpec, inner
from confed.initial import glorot, zeros


class Blended(Backbone):
    """s_i = p_u · (V[i] + share · drift_u[i]), where the drift is how far the client moved the table it last trained.

    The server has p_u, and says what the share is: none while a client trains.
    """

    def __init__(self, items: int, width: int, *, one_start: bool = False) -> None:
        self.params = (
            ParamSpec("user", (width,), "user", "shared", glorot, personal=True, one_start=one_start),
            ParamSpec("share", (1,), "head", "shared", zeros, personal=True),
            ParamSpec("items", (items, width), "item", "shared", glorot),
            ParamSpec("drift", (items, width), "item", "private", zeros, "until next"),
        )

    def logits(self, params: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> Tensor:
        scores, share = inner(rows["items"], params["user"]), params["share"]
        return scores + share * inner(rows["drift"], params["user"]) if bool((share != 0.0).any()) else scores
