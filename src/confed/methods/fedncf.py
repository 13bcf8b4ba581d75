"""FedNCF: federated neural collaborative filtering (Perifanis and Efraimidis 2022).

NeuMF on the device: user vectors stay, both item tables, the tower and the output layer travel. All parameters take
one joint Adam step per batch. The server averages the networks weighted by the clients' numbers of rows, and each item
row over the clients that changed it (MF-FedAvg; decisions.md "fedncf").
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from confed.clients.backbones import NeuMF
from confed.clients.procedures import Procedure, Step
from confed.initial import normal
from confed.messages import Over
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces
from confed.server.selection import Selection
from confed.server.strategies import Average


class FedNCFConfig(FederatedConfig):
    learning_rate: float = Field(default=0.05, gt=0)
    """Adam's step size, for all parameters."""
    variant: Literal["gmf", "mlp", "neumf"] = "neumf"
    """Which branches the model has."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial embeddings."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """The local optimiser; its state does not survive the round."""

    @property
    def tower(self) -> tuple[int, ...]:
        """[2d, d, d/2, d/4] with the input width left out (D-7)."""
        return (self.dim, max(self.dim // 2, 1), max(self.dim // 4, 1))


class FedNCF(DeviceMethod):
    name = "fedncf"
    title = "FedNCF: federated neural collaborative filtering"
    citation = "Perifanis and Efraimidis, Federated Neural Collaborative Filtering, Knowledge-Based Systems 2022"
    config_class = FedNCFConfig
    discloses = (
        "the number of rows each client trains on (the weights of the network average), and which items these are "
        "about (an item's rows are averaged over those who hold it)"
    )

    def pieces(self, config: FedNCFConfig, items: int) -> Pieces:
        backbone = NeuMF(items, config.dim, config.tower, config.variant, normal(config.init_deviation))
        rates = {spec.name: config.learning_rate for spec in backbone.params}
        plan: dict[str, Over] = {
            spec.name: "holders" if spec.role == "item" else "samples" for spec in backbone.named(scope="shared")
        }
        return Pieces(
            backbone=backbone,
            procedure=Procedure((config.phase(Step(rates, (config.loss,), config.optimiser)),), config.train_negatives),
            strategy=Average(plan),
            selection=Selection(config.fraction),
            view="global",
        )
