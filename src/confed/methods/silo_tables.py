"""FedMF and FedGNN between companies: private item tables, averaged user rows (D-32).

    fedmf-silo    logit P[u] · Q[i], cross-entropy with 4 negatives
    fedgnn-silo   LightGCN's propagation on the company's own graph from (P, Q), BPR

Every company trains 5 epochs a round with Adam; the server averages the rows of P over the companies that know the
user. Published without details; this is the plainest reading. Scored with the server's rows (`global`), and with the
company's own (`local`) as the second line. FedGNN's noise (clip 0.1, Laplace 0.2) is off, and the Gaussian mechanism of
`upload_clip` and `upload_noise` stands in for it. The server begins with random rows, so that all companies start with
the same idea of a person. Who is cold in a domain is scored there with the row that the other companies made of him.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from confed.data.split import TrainingData
from confed.initial import initial, normal
from confed.methods.silo import SiloConfig, SiloMethod
from confed.models.lightgcn import LightGCNConfig, LightGCNModel
from confed.models.mf import MFConfig, MFModel
from confed.models.silo import Shared, Silo
from confed.models.table_silo import TableSilo
from confed.protocol import View


class FedMFSiloConfig(SiloConfig):
    batch_size: int = Field(default=256, ge=1)
    """Rows (user, item, label) per local step, of positives and of negatives."""
    train_negatives: int = Field(default=4, ge=1)
    """Sampled negatives per positive, redrawn every local epoch."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial vectors."""


class FedGNNSiloConfig(SiloConfig):
    batch_size: int = Field(default=256, ge=1)
    """Triples (user, positive, negative) per local step."""
    layers: int = Field(default=3, ge=1, le=100)
    """Graph layers."""
    regularisation: float = Field(default=1e-4, ge=0)
    """λ, on the layer-0 rows of a batch."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors."""


class TableMethod(SiloMethod):
    """User rows travel under the name `users`."""

    view: ClassVar[View] = "global"

    def exchanged(self, config: Any) -> tuple[str, ...]:
        return ("users",)

    def start(self, config: Any, people: int, seed: int, dtype: torch.dtype) -> dict[str, Tensor]:
        rows = initial(seed, "people", (people, config.dim), normal(config.init_deviation))
        return {"users": rows.to(dtype)}


class FedMFSilo(TableMethod):
    name: ClassVar[str] = "fedmf-silo"
    title: ClassVar[str] = "FedMF between companies: averaged user rows"
    citation: ClassVar[str] = "Chai et al., Secure Federated Matrix Factorization, IEEE Intelligent Systems 2020"
    config_class: ClassVar[type[SiloConfig]] = FedMFSiloConfig

    def silo(self, config: Any, data: TrainingData, shared: Shared, seed: int, dtype: str) -> Silo:
        options = config.model_dump(include=set(MFConfig.model_fields))
        model = MFModel(MFConfig(**options), data, seed, dtype)
        return TableSilo(model, "users", shared, config.local_epochs)


class FedGNNSilo(TableMethod):
    name: ClassVar[str] = "fedgnn-silo"
    title: ClassVar[str] = "FedGNN between companies: graph encoder, averaged user rows"
    citation: ClassVar[str] = "Wu et al., FedGNN: Federated Graph Neural Network for Privacy-Preserving Recommendation"
    config_class: ClassVar[type[SiloConfig]] = FedGNNSiloConfig

    def negatives(self, config: Any) -> int:
        return 1

    def silo(self, config: Any, data: TrainingData, shared: Shared, seed: int, dtype: str) -> Silo:
        options = config.model_dump(include=set(LightGCNConfig.model_fields))
        model = LightGCNModel(LightGCNConfig(**options), data, seed, dtype)
        return TableSilo(model, "nodes", shared, config.local_epochs)
