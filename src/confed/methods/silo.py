"""What methods between companies have in common: a silo for every domain, and what travels between them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from confed.config import MethodConfig
from confed.data.split import TrainingData
from confed.methods.base import Kind, Method
from confed.models.silo import Shared, Silo
from confed.privacy.gaussian import GaussianMechanism
from confed.protocol import View
from confed.silos.exchange import Exchange


class SiloConfig(MethodConfig):
    """What every method between companies has."""

    dim: int = Field(default=128, ge=1)
    """Width of user and item vectors."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size; its moments live as long as the company."""
    local_epochs: int = Field(default=5, ge=1)
    """Passes over a company's interactions in one round."""
    batch_size: int = Field(default=256, ge=1)
    """Interactions per local step."""
    upload_clip: float | None = Field(default=None, gt=0)
    """Clip what is sent about a person to this length; with `upload_noise`, the Gaussian mechanism."""
    upload_noise: float | None = Field(default=None, gt=0)
    """Deviation of the noise on every number that is sent, in multiples of `upload_clip`."""

    @model_validator(mode="after")
    def _both_or_none(self) -> SiloConfig:
        if (self.upload_clip is None) != (self.upload_noise is None):
            raise ValueError("upload_clip and upload_noise belong together: set both, or neither")
        return self

    @property
    def mechanism(self) -> GaussianMechanism | None:
        if self.upload_clip is None or self.upload_noise is None:
            return None
        return GaussianMechanism(self.upload_clip, self.upload_noise)


class SiloMethod(Method):
    """A method whose clients are companies."""

    kind: ClassVar[Kind] = "silo"
    view: ClassVar[View] = "local"
    rounds: ClassVar[int] = 50
    patience: ClassVar[int | None] = 10
    discloses: ClassVar[str] = (
        "which users several companies have in common (matched by salted hashes of ids); and of a user known to two, "
        "either learns what the other sent, as a mean of two without one's own is the other"
    )

    @abstractmethod
    def silo(self, config: Any, data: TrainingData, shared: Shared, seed: int, dtype: str) -> Silo:
        """A company with this data; `seed` is its own."""

    @abstractmethod
    def exchange(self, config: Any) -> Exchange | None:
        """What travels; None where every company stays alone."""

    def start(self, config: Any, people: int, seed: int, dtype: torch.dtype) -> dict[str, Tensor]:
        """What the server knows of people before the first round."""
        return {}
