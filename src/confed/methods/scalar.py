"""Control: one number per user and item, and no sharing (decisions.md "Training negatives").

It learns nothing but which items it was shown. Under the `paper` protocol it still passes every published figure on
MovieLens-100K, because training negatives avoid the held-out items; under `strict` it is at chance.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from confed.clients.backbones import Scalar
from confed.clients.procedures import Procedure, Step
from confed.methods.base import Kind
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces
from confed.server.selection import Selection
from confed.server.strategies import Average


class ScalarConfig(FederatedConfig):
    learning_rate: float = Field(default=50.0, gt=0)
    """Step size; divided by the batch size it is the step per row."""


class ScalarControl(DeviceMethod):
    name = "scalar"
    title = "Control: one number per user and item, no sharing"
    citation = "A control: not a published method"
    kind: ClassVar[Kind] = "control"
    config_class = ScalarConfig
    rounds = 50

    def pieces(self, config: ScalarConfig, items: int) -> Pieces:
        step = Step({"items": config.learning_rate}, (config.loss,))
        return Pieces(
            backbone=Scalar(items),
            procedure=Procedure((config.phase(step),), config.train_negatives),
            strategy=Average({}),
            selection=Selection(config.fraction),
            view="local",
        )
