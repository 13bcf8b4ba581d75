"""Two controls without any federation, against which every claim of personalisation is held (methods.md 3.6).

`scalar` keeps one number per user and item and learns nothing but which items it was shown. Under the `paper` protocol
it still passes every published figure on MovieLens-100K, because training negatives avoid the held-out items.
`local-only` is PFedRec whose clients never meet: each keeps its own item table for ever.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from confed.clients.backbones import LinearHead, Scalar
from confed.clients.procedures import Procedure, Step
from confed.methods.base import FederatedConfig, FederatedMethod, Kind, Pieces
from confed.methods.pfedrec import PFedRecConfig
from confed.server.selection import Selection
from confed.server.strategies import Average


class ScalarConfig(FederatedConfig):
    learning_rate: float = Field(default=50.0, gt=0)
    """Step size; divided by the batch size it is the step per row."""


class ScalarControl(FederatedMethod):
    name = "scalar"
    title = "Control: one number per user and item, no sharing"
    citation = "methods.md 3.6"
    kind: ClassVar[Kind] = "control"
    config_class = ScalarConfig
    rounds = 50

    def pieces(self, config: ScalarConfig, items: int) -> Pieces:
        step = Step({"items": config.learning_rate}, (config.loss,))
        return Pieces(
            backbone=Scalar(items),
            procedure=Procedure((step,), config.local_epochs, config.batch_size, config.train_negatives),
            strategy=Average({}),
            selection=Selection(config.fraction),
            view="local",
        )


class LocalOnly(FederatedMethod):
    name = "local-only"
    title = "Control: PFedRec with the federation off"
    citation = "methods.md 3.6"
    kind: ClassVar[Kind] = "control"
    config_class = PFedRecConfig

    def pieces(self, config: PFedRecConfig, items: int) -> Pieces:
        return Pieces(
            backbone=LinearHead(items, config.dim, items_scope="private"),
            procedure=config.procedure(items),
            strategy=Average({}),
            selection=Selection(config.fraction),
            view="local",
        )
