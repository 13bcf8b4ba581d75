"""FedMF: federated matrix factorisation (Chai et al. 2020), in the implicit-feedback form that papers compare with.

A client keeps its user vector and steps it together with its copy of the item table on the batch-mean cross-entropy.
What the server makes of the tables is open (D-8): the original adds up all changes; the papers that compare
with it average, without saying how the item step makes up for the dilution. D-8 takes the sum and asks for a choice on
validation data. On MovieLens-100K (`strict`, validation HR@10, 150 rounds, seed 0) we saw: sum with learning rate 0.01,
0.05, 0.1: 45.4, 45.4, 49.8; count: 11.0; mean with the item step scaled as in PFedRec by items · η, η = 1, 10, 80:
54.5, 69.3, 70.4, the last in round 80. So the default is the mean and 100 rounds instead of 300, with η = 80 on
datasets of papers; on others η follows from the data (methods/rates.py). The sum with the published learning rate
barely leaves popularity, because tables and user vectors then both take steps of a batch mean. papers/foundation has
the test figures of three of these under `paper`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from confed.clients.backbones import Dot
from confed.clients.procedures import Procedure, Step
from confed.messages import Over
from confed.methods.devices import DeviceMethod, Pieces, ScaledItemsConfig
from confed.methods.rates import AS_PUBLISHED
from confed.privacy.encrypted import SimulatedPaillier
from confed.privacy.filters import Chain
from confed.server.selection import Selection
from confed.server.strategies import Average

_OVER: dict[str, Over] = {"sum": "sum", "mean": "participants", "count": "holders"}


class FedMFConfig(ScaledItemsConfig):
    move: ClassVar[float] = 150.0
    aggregation: Literal["sum", "mean", "count"] = "mean"
    """Sum of all changes; their mean over participants, with the item step scaled up; or over a row's holders."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors."""
    he: Literal["off", "simulated"] = "off"
    """Homomorphic encryption as the original has it: numbers in fixed point and the sizes of ciphertexts (Paillier,
    1,024 bits). Nothing is encrypted."""

    @property
    def filters(self) -> Chain:
        own = (SimulatedPaillier(),) if self.he == "simulated" else ()
        return Chain((*super().filters.filters, *own))

    def item_rate(self, items: int) -> float:
        return super().item_rate(items) if self.aggregation == "mean" else self.learning_rate

    @property
    def is_open(self) -> bool:
        return self.aggregation == "mean" and super().is_open


class FedMF(DeviceMethod):
    name = "fedmf"
    title = "FedMF: federated matrix factorisation"
    citation = "Chai et al., Secure Federated Matrix Factorization, IEEE Intelligent Systems 2020"
    config_class = FedMFConfig
    defaults: ClassVar = dict.fromkeys(
        ("ml-100k", "ml-1m", "filmtrust", "lastfm-2k", "lastfm-2k-listens", "douban-book", "qb-article"), AS_PUBLISHED
    )
    discloses = "nothing; with aggregation=count, which items each client trains on"

    def pieces(self, config: FedMFConfig, items: int) -> Pieces:
        step = Step({"user": config.learning_rate, "items": config.item_rate(items)}, (config.loss,))
        return Pieces(
            backbone=Dot(items, config.dim, config.init_deviation),
            procedure=Procedure((config.phase(step),), config.train_negatives),
            strategy=Average({"items": _OVER[config.aggregation]}),
            selection=Selection(config.fraction),
            view="global",
        )
