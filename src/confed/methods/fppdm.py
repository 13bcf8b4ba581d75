"""FPPDM and FPPDM++: companies exchange preference distributions of shared users (Liu et al., IJCAI 2023).

Each company encodes its users and items as Gaussians over its own graph (`silos.graph`), sends mean and deviation of
the users that others know too, and is drawn towards the server's barycentre of them (`silos.preference`,
`server.barycentre`). FPPDM++ also draws users with similar tastes together (`silos.compactness`). Interactions, items
and weights never leave; methods.md 7.11 and 7.12.

Variants: `alone` never exchanges anything; of FPPDM++ also `B` (points in place of distributions, no co-clustering) and
`P` (points with co-clustering), figure 3 of the paper.

Deviations from the paper, which leaves much open (methods.md 7.0, D-35 to D-43): deviations are softplus(raw) + 1e-4;
the positive stands in the denominator of ℓ_R, 10 negatives; ℓ_R is a mean over the batch's rows, ℓ_P and ℓ_C over its
users (`silos.preference` says what that does to their weights); λ_P is 0 in round 1; a user
is averaged over the companies that have interactions of him; K-Means sees the spectral rows at unit scale, without
which all clusters are one (`silos.compactness` has the arithmetic). The round is chosen by the mean over domains of the
validation metric. All companies begin with the same weights and the same rows of shared people (`common_start`; the
paper does not say how they begin): on three synthetic domains that gives the sparse one 42.8 HR@10 after eight rounds
against 36.8 for random starts of their own (validation, seed 0), and costs nobody anything.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from confed.data.split import TrainingData
from confed.methods.silo import SiloConfig, SiloMethod
from confed.silos.autoencoder import AutoencoderSilo
from confed.silos.base import Shared, Silo
from confed.silos.compactness import CoClustering
from confed.silos.exchange import Exchange
from confed.silos.graph import GraphSilo
from confed.silos.preference import Pull


class PreferenceConfig(SiloConfig):
    """What local models with user distributions have in common."""

    variant: Literal["full", "alone"] = "full"
    """`full`, or `alone`: nothing is exchanged."""
    alignment: float = Field(default=0.05, ge=0)
    """λ_P, the pull towards the server's distributions."""

    @property
    def distributions(self) -> bool:
        """Whether there are deviations, or points only."""
        return self.variant not in ("B", "P")

    @property
    def pull(self) -> Pull:
        return Pull(self.alignment, 0.0, CoClustering())


class FPPDMConfig(PreferenceConfig):
    layers: int = Field(default=3, ge=1)
    """Graph layers."""
    train_negatives: int = Field(default=10, ge=1)
    """Sampled negatives per positive, redrawn every local epoch."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial vectors. On Douban 0.1 makes the first round the best, before any exchange."""
    common_start: bool = True
    """All companies begin with the same weights and the same rows of shared people, from a seed they agreed on."""
    denominator: Literal["all", "paper"] = "all"
    """Of the metric loss: the positive and the negatives, or, as printed, the negatives alone (not bounded below)."""


class CoClusteringConfig(SiloConfig):
    """FPPDM++'s additions."""

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
    def co_clustering(self) -> CoClustering:
        return CoClustering(self.clusters, self.entropy, self.coupling, self.alternations)


class FPPDMPlusConfig(FPPDMConfig, CoClusteringConfig):
    variant: Literal["full", "P", "B", "alone"] = "full"  # type: ignore[assignment]
    """`full`; `P`: points in place of distributions; `B`: points, and no co-clustering; `alone`: no exchange."""

    @property
    def pull(self) -> Pull:
        weight = 0.0 if self.variant == "B" else self.clustering
        return Pull(self.alignment, weight, self.co_clustering, self.cluster_every)


class PreferenceMethod(SiloMethod):
    """Companies that tell each other the preference distributions of users they share, and nothing else."""

    silo_class: ClassVar[type[GraphSilo] | type[AutoencoderSilo]]

    def silo(self, config: Any, data: TrainingData, shared: Shared, seed: int, dtype: str) -> Silo:
        return self.silo_class(config, config.pull, data, shared, seed, dtype)

    def exchange(self, config: Any) -> Exchange | None:
        if config.variant == "alone":
            return None
        return Exchange(("mean", "deviation") if config.distributions else ("mean",), config.mechanism)


class FPPDM(PreferenceMethod):
    name: ClassVar[str] = "fppdm"
    title: ClassVar[str] = "FPPDM: federated preference distributions between companies"
    citation: ClassVar[str] = (
        "Liu et al., Federated Probabilistic Preference Distribution Modelling with Compactness Co-Clustering for "
        "Privacy-Preserving Multi-Domain Recommendation, IJCAI 2023"
    )
    config_class: ClassVar[type[FPPDMConfig]] = FPPDMConfig
    silo_class: ClassVar[type[GraphSilo]] = GraphSilo


class FPPDMPlus(FPPDM):
    name: ClassVar[str] = "fppdm++"
    title: ClassVar[str] = "FPPDM++: FPPDM with compactness co-clustering of users"
    config_class: ClassVar[type[FPPDMConfig]] = FPPDMPlusConfig
