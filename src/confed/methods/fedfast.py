"""FedFast: going beyond average for faster training of federated recommender systems (Muhammad et al. 2020).

Generalised matrix factorisation, s_i = h · (p_u ⊙ V[i]) + c, of which the server has everything, every client's vector
p_u included. It groups clients by their vectors, and

- ActvSAMP: draws the participants of a round evenly from all groups;
- ActvAGG: averages h and c by the clients' numbers of rows, and V[i] weighted by how far each client moved it,
  c_k[i] = ‖V^k[i] − V[i]‖₁; takes the participants' vectors as they come back; groups everybody anew; and moves those
  of a group who did not take part by γ_t times the mean move of those who did.

Clients take `local_epochs` of SGD on all of it. Somebody new begins with the mean of all vectors.

Deviations: there is no published code. γ_t = 0.9ᵗ, ten groups and a tenth of the clients, at least 50, are chosen
(D-13).
"""

from __future__ import annotations

from pydantic import Field

from confed.clients.backbones import NeuMF
from confed.clients.procedures import Procedure, Step
from confed.initial import normal
from confed.messages import Over
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces
from confed.server.selection import FromEveryGroup
from confed.server.strategies import ActiveAverage, Average

_VECTOR = "gmf_user"


class FedFastConfig(FederatedConfig):
    learning_rate: float = Field(default=0.05, gt=0)
    """Step size of all parameters."""
    fraction: float = Field(default=0.1, gt=0, le=1)
    """Share of the clients that take part in a round."""
    fewest: int = Field(default=50, ge=1)
    """At least so many take part, if there are as many."""
    groups: int = Field(default=10, ge=1)
    """Into how many clients are grouped."""
    shrink: float = Field(default=0.9, ge=0, le=1)
    """What γ, with which others follow the participants of their group, is multiplied by from round to round."""
    common_start: bool = False
    """Let all clients' vectors begin with the same numbers, as those of methods do whose clients keep them."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors."""


class FedFast(DeviceMethod):
    name = "fedfast"
    title = "FedFast: participants from all groups, others follow those of their group"
    citation = "Muhammad et al., FedFast: Going Beyond Average for Faster Training of Federated Recommenders, KDD 2020"
    config_class = FedFastConfig
    discloses = (
        "every client's vector, by which the server groups them; the number of rows each participant trains on (the "
        "weights of the networks' average); and how far each of them moved an item's row"
    )

    def pieces(self, config: FedFastConfig, items: int) -> Pieces:
        init = normal(config.init_deviation)
        backbone = NeuMF(items, config.dim, (), "gmf", init, server_has_users=True, one_start=config.common_start)
        plan: dict[str, Over] = {"gmf_items": "movers", "head": "samples", "head_bias": "samples"}
        step = Step({spec.name: config.learning_rate for spec in backbone.params}, (config.loss,))
        return Pieces(
            backbone=backbone,
            procedure=Procedure((config.phase(step),), config.train_negatives),
            strategy=ActiveAverage(_VECTOR, Average(plan), config.groups, config.shrink),
            selection=FromEveryGroup(config.fraction, config.fewest),
            view="global",
        )
