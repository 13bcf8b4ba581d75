"""What methods have in common whose companies exchange preference distributions of shared users, on whatever local
model: FPPDM and FPPDM++ on a graph encoder (`methods.fppdm`), ETL-F and ETL-FC on autoencoders (`methods.etl`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

from pydantic import Field, model_validator

from confed.data.split import TrainingData
from confed.methods.silo import SiloConfig, SiloMethod
from confed.models.compactness import CoClustering
from confed.models.distributions import SMALLEST
from confed.models.preference import PreferenceSilo, Pull
from confed.models.silo import Shared


class PreferenceConfig(SiloConfig):
    """What local models with user distributions have in common."""

    variant: Literal["full", "alone"] = "full"
    """`full`, or `alone`: nothing is exchanged."""
    alignment: float = Field(default=0.05, ge=0)
    """λ_P, the pull towards the server's distributions."""

    @property
    def distributions(self) -> bool:
        """Whether there are deviations, or points only."""
        return True

    @property
    def least(self) -> dict[str, float]:
        """What noise made negative is no deviation."""
        return {"deviation": SMALLEST}

    @property
    def pull(self) -> Pull:
        return Pull(self.alignment, 0.0, CoClustering())

    @property
    def idle(self) -> dict[str, str]:
        """Options that do nothing, each with the choice that makes it so."""
        because = f"variant={self.variant}"
        return dict.fromkeys(("alignment", "upload_clip", "upload_noise"), because) if self.variant == "alone" else {}

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> PreferenceConfig:
        """Whoever asks for noise, say, must not believe there is some."""
        for name, because in self.idle.items():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} does nothing with {because}: leave one of them out")
        return self


class CoClusteringConfig(PreferenceConfig):
    """What drawing users with similar tastes together adds."""

    clustering: float = Field(default=0.07, ge=0)
    """λ_C, the pull towards the own clusters."""
    clusters: int = Field(default=15, ge=1)
    """M, clusters in a batch."""
    entropy: float = Field(default=0.05, gt=0)
    """ε, of similarities and assignments; distances are relative to their mean."""
    coupling: float = Field(default=0.1, ge=0)
    """η, the weight of the spectral indicators in the similarities."""
    alternations: int = Field(default=2, ge=1)
    """How often similarities and indicators are computed in turn."""
    cluster_every: int = Field(default=1, ge=1)
    """Batches from one co-clustering to the next; the term's weight grows by the same factor."""

    @property
    def idle(self) -> dict[str, str]:
        found = super().idle
        if self.clustering == 0:
            found |= dict.fromkeys(("clusters", "entropy", "coupling", "alternations", "cluster_every"), "clustering=0")
        if self.alternations == 1:
            found |= {"coupling": "alternations=1"}
        return found

    @property
    def pull(self) -> Pull:
        found = CoClustering(self.clusters, self.entropy, self.coupling, self.alternations)
        return Pull(self.alignment, self.clustering, found, self.cluster_every)


class SiloClass(Protocol):
    """A local model's constructor."""

    def __call__(
        self, config: Any, pull: Pull, data: TrainingData, shared: Shared, seed: int, dtype: str
    ) -> PreferenceSilo: ...


class PreferenceMethod(SiloMethod):
    """Companies that tell each other the preference distributions of users they share, and nothing else."""

    silo_class: ClassVar[SiloClass]

    def silo(self, config: Any, data: TrainingData, shared: Shared, seed: int, dtype: str) -> PreferenceSilo:
        return self.silo_class(config, config.pull, data, shared, seed, dtype)

    def exchanged(self, config: Any) -> tuple[str, ...]:
        if config.variant == "alone":
            return ()
        return ("mean", "deviation") if config.distributions else ("mean",)
