"""PFedRec: dual personalisation (Zhang et al., IJCAI 2023), the backbone of CoFedRec.

A client u scores with a linear function of its own, w_u · V_u[i] + b_u. In a round it

    receives V and makes it its own: V_u ← V
    for every epoch, for every batch B of its items and fresh negatives:
        (w_u, b_u) ← (w_u, b_u) − η_w ∇ ℓ(B)         the head, on the mean cross-entropy
        V_u        ← V_u − η_V ∇ ℓ(B)                the items, after a new forward pass
    sends V_u; the server's V is the mean over those who took part

(`procedure` below; `clients/cohort.py` runs it for many clients at once, `clients/fused.py` in one compiled pass). The
head never leaves. Clients are scored with the table they tuned (`local` view), which is what "dual personalisation"
means.

The item step is lr · items · η: the batch mean touches few rows, and the server's mean over all clients dilutes each
row once more. On datasets of papers η = 80, as in the published code; on others η follows from the data
(methods/rates.py).

Deviations: cross-entropy in logit space (D-1; `reproduction.saturating_bce` restores the published form); b_u is not
uploaded (the published code sends it and never uses it).

`local-only` is the control: PFedRec whose clients never meet. Each keeps its own item table for ever.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from confed.clients.backbones import LinearHead
from confed.clients.procedures import Procedure, Step
from confed.methods.base import Kind
from confed.methods.devices import DeviceMethod, Pieces, ScaledItemsConfig
from confed.methods.rates import AS_PUBLISHED, PAPERS
from confed.server.selection import Selection
from confed.server.strategies import Average


class PFedRecConfig(ScaledItemsConfig):
    move: ClassVar[float] = 300.0  # its tables begin ten times as wide as FedMF's

    def procedure(self, items: int) -> Procedure:
        """The local loop: for every batch the head's step, then the items'."""
        head = Step({"weight": self.learning_rate, "bias": self.learning_rate}, (self.loss,))
        table = Step({"items": self.item_rate(items)}, (self.loss,))
        return Procedure((self.phase(head, table),), self.train_negatives)


class PFedRec(DeviceMethod):
    name = "pfedrec"
    title = "PFedRec: personal score function and personal item table"
    citation = "Zhang et al., Dual Personalization on Federated Recommendation, IJCAI 2023"
    config_class = PFedRecConfig
    defaults: ClassVar = {
        "lastfm-2k": {"learning_rate": 0.05, **AS_PUBLISHED},
        **dict.fromkeys(
            ("ml-100k", "ml-1m", "filmtrust", "lastfm-2k-listens", "douban-book", "qb-article"), AS_PUBLISHED
        ),
    }

    def pieces(self, config: PFedRecConfig, items: int) -> Pieces:
        return Pieces(
            backbone=LinearHead(items, config.dim),
            procedure=config.procedure(items),
            strategy=Average({"items": "participants"}),
            selection=Selection(config.fraction),
            view="local",
        )


class LocalOnlyConfig(PFedRecConfig):
    item_rate_factor: float | None = Field(default=PAPERS, gt=0)
    """η: the items are stepped with learning_rate · items · η. No server dilutes it, so no data changes it."""


class LocalOnly(DeviceMethod):
    name = "local-only"
    title = "Control: PFedRec with the federation off"
    citation = "A control: not a published method"
    kind: ClassVar[Kind] = "control"
    config_class = LocalOnlyConfig

    def pieces(self, config: LocalOnlyConfig, items: int) -> Pieces:
        return Pieces(
            backbone=LinearHead(items, config.dim, items_scope="private"),
            procedure=config.procedure(items),
            strategy=Average({}),
            selection=Selection(config.fraction),
            view="local",
        )
