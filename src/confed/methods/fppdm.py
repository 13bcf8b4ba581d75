"""FPPDM and FPPDM++: companies exchange preference distributions of shared users (Liu et al., IJCAI 2023).

Each company encodes its users and items as Gaussians over its own graph (`models.graph_silo`), sends mean and deviation
of the users that others know too, and is drawn towards the server's barycentre of them (`models.preference`,
`server.barycentre`). FPPDM++ also draws users with similar tastes together (`models.compactness`). Interactions, items
and weights never leave; decisions.md "fppdm" and decisions.md "fppdm++".

Variants: `alone` never exchanges anything; of FPPDM++ also `B` (points in place of distributions, no co-clustering) and
`P` (points with co-clustering), figure 3 of the paper.

Who is cold in a domain, a user it has no interactions of, is drawn to the server's distribution by ℓ_P alone
(`local`), or scored with that distribution itself (`global`).

Deviations from the paper, which leaves much open (D-35 to D-43): deviations are softplus(raw) + 1e-4; the positive
stands in the denominator of ℓ_R, 10 negatives; ℓ_R is a mean over the batch's rows, ℓ_P and ℓ_C over its users
(`models.preference` says what that does to their weights); λ_P is 0 in round 1; a user is averaged over the companies
that have interactions of him; K-Means sees the spectral rows at unit scale, without which all clusters are one
(`models.compactness` has the arithmetic). The round is chosen by the mean over domains of the validation metric. All
companies begin with the same weights and the same rows of shared people (`common_start`; the paper does not say how
they begin): on three synthetic domains that gives the sparse one 42.8 HR@10 after eight rounds against 36.8 for random
starts of their own (validation, seed 0), and costs nobody anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from confed.methods.preference import CoClusteringConfig, PreferenceConfig, PreferenceMethod, SiloClass
from confed.models.graph_silo import GraphSilo
from confed.models.preference import Pull


class FPPDMConfig(PreferenceConfig):
    layers: int = Field(default=3, ge=1, le=100)
    """Graph layers."""
    train_negatives: int = Field(default=10, ge=1)
    """Sampled negatives per positive, redrawn every local epoch."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial vectors. On Douban 0.1 makes the first round the best, before any exchange."""
    common_start: bool = True
    """All companies begin with the same weights and the same rows of shared people, from a seed they agreed on."""
    score: Literal["distance", "dot", "biased", "scaled", "normalised"] = "distance"
    """How a user and an item are compared: by −D as printed; by the dot product of their points; by −D and a number of
    the item; by −κ D with a learned κ; by the last, of points of length 1."""
    denominator: Literal["all", "paper"] = "all"
    """Of the metric loss: the positive and the negatives, or, as printed, the negatives alone (not bounded below)."""


class FPPDMPlusConfig(FPPDMConfig, CoClusteringConfig):
    variant: Literal["full", "P", "B", "alone"] = "full"  # type: ignore[assignment]
    """`full`; `P`: points in place of distributions; `B`: points, and no co-clustering; `alone`: no exchange."""

    @property
    def distributions(self) -> bool:
        return self.variant not in ("B", "P")

    @property
    def pull(self) -> Pull:
        return replace(super().pull, clustering=0.0) if self.variant == "B" else super().pull

    @property
    def idle(self) -> dict[str, str]:
        return dict.fromkeys(CoClusteringConfig.__annotations__, "variant=B") if self.variant == "B" else super().idle


class FPPDM(PreferenceMethod):
    name: ClassVar[str] = "fppdm"
    title: ClassVar[str] = "FPPDM: federated preference distributions between companies"
    citation: ClassVar[str] = (
        "Liu et al., Federated Probabilistic Preference Distribution Modelling with Compactness Co-Clustering for "
        "Privacy-Preserving Multi-Domain Recommendation, IJCAI 2023"
    )
    config_class: ClassVar[type[FPPDMConfig]] = FPPDMConfig
    silo_class: ClassVar[SiloClass] = GraphSilo


class FPPDMPlus(FPPDM):
    name: ClassVar[str] = "fppdm++"
    title: ClassVar[str] = "FPPDM++: FPPDM with compactness co-clustering of users"
    config_class: ClassVar[type[FPPDMConfig]] = FPPDMPlusConfig
