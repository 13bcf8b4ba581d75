"""ETL's autoencoders, with two domains in one place (`etl`) and between companies (`etl-f`, `etl-fc`).

    etl      Chen et al.: two domains, all rows in one place (`models.etl`; decisions.md "etl")
    etl-f    FPPDM's exchange on ETL's autoencoders: the companies send mean and deviation of shared users and are drawn
             towards the server's barycentre of them (`models.autoencoder`; D-41)
    etl-fc   etl-f, and users with similar tastes are drawn together as in FPPDM++

Liu et al. (IJCAI 2023) name the last two a "method extension" and print no formulas; the table of their figures is
missing in our copy, so there is nothing to compare with. The modules say how the gaps are filled. Both are scored by
the company's own means (`local`), and by the server's (`global`) as the second line. Variant `alone` never exchanges
anything. The weights λ_P and λ_C are those of FPPDM, although ℓ_R is larger here: a sum over all items of a domain
where FPPDM has one softmax.

Who is cold in a domain is scored by `etl` with the map of what the other domain sees in him; by the others with the
embedding that ℓ_P has drawn to the server's mean (`local`), or with that mean (`global`).

All three need steps: at first they learn how popular items are, and tell users apart only later. On Douban (book and
music, 882 people, validation HR@10, seed 0; popularity has 33.8 / 28.7) etl-f leaves that plateau after some 15 rounds
of 20 steps and is best near round 45 (43.7 / 38.4). `etl` takes four batches of 256 an epoch there, and after 200
epochs stands at 34.9 / 28.9; with batch_size=32 it reaches 40.5 / 37.6 in epoch 120.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from confed.data.domain_split import DomainSplit
from confed.methods.central import JointMethod
from confed.methods.preference import CoClusteringConfig, PreferenceConfig, PreferenceMethod, SiloClass
from confed.models.autoencoder import AutoencoderSilo
from confed.models.etl import ETLConfig, ETLModel


class ETLFConfig(PreferenceConfig):
    dim: int = Field(default=200, ge=1)
    """Width of means, deviations and the hidden layer."""
    local_epochs: int = Field(default=5, ge=1)
    """Passes over a company's users in one round."""
    batch_size: int = Field(default=256, ge=1)
    """Users per local step."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Share of the ones of a user's row that the encoder does not see in training."""
    weight_decay: float = Field(default=0.001, ge=0)
    """L2 pull of all parameters towards 0, added to the gradient of a batch's sum over users (not of their mean)."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial embeddings of users."""


class ETLFCConfig(ETLFConfig, CoClusteringConfig):
    """ETL-F's options and those of co-clustering."""


class ETLF(PreferenceMethod):
    name: ClassVar[str] = "etl-f"
    title: ClassVar[str] = "ETL-F: federated autoencoders with preference distributions"
    citation: ClassVar[str] = (
        "Liu et al., Federated Probabilistic Preference Distribution Modelling with Compactness Co-Clustering for "
        "Privacy-Preserving Multi-Domain Recommendation, IJCAI 2023, on the model of ETL (Chen et al., TOIS 2023)"
    )
    config_class: ClassVar[type[ETLFConfig]] = ETLFConfig
    rounds: ClassVar[int] = 80
    patience: ClassVar[int | None] = 20
    silo_class: ClassVar[SiloClass] = AutoencoderSilo


class ETLFC(ETLF):
    name: ClassVar[str] = "etl-fc"
    title: ClassVar[str] = "ETL-FC: ETL-F with compactness co-clustering of users"
    config_class: ClassVar[type[ETLFConfig]] = ETLFCConfig


class ETL(JointMethod):
    name: ClassVar[str] = "etl"
    title: ClassVar[str] = "ETL: two domains' autoencoders with a map between them"
    citation: ClassVar[str] = (
        "Chen et al., Toward Equivalent Transformation of User Preferences in Cross Domain Recommendation, "
        "ACM Transactions on Information Systems 41(1), 2023"
    )
    config_class: ClassVar[type[ETLConfig]] = ETLConfig
    rounds: ClassVar[int] = 300
    most_domains: ClassVar[int | None] = 2

    def model(self, config: Any, cut: DomainSplit, seed: int, dtype: str) -> ETLModel:
        return ETLModel(config, cut, seed, dtype)
