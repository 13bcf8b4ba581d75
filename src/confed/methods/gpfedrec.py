"""GPFedRec: graph-guided personalisation for federated recommendation (Zhang et al. 2024).

A client scores an item by a network of its own on [p_u ; V_u[i]]; p_u and the network stay with it, its item table V_u
travels. It begins a round with the common table, and is kept near a table r_u that the server made for it:

    L_u = BCE + `near` · mean((V_u − r_u)²)                the mean over all entries of the table

One joint step of SGD a batch: the network with lr, p_u with lr η / `fraction` − lr, V_u with lr · items · η − lr.

The server links clients whose tables have a larger cosine than the mean over all pairs (times `threshold`), or the
`neighbours` nearest; with A the matrix of links, rows divided by their sums, r = Aˡ V, and the next common table is the
mean of all r_u. In the first round r_u is the common table itself.

Deviations: the published code takes cosine *distances* and keeps those above the threshold, so that it links the most
dissimilar clients; `reproduction.graph_by_distance` restores that. Whoever does not take part in a round is no
neighbour in it, and is kept near the common table; the published code needs everybody in every round.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from confed.clients.backbones import NeuMF
from confed.clients.objectives import Near
from confed.clients.procedures import Procedure, Step
from confed.initial import normal
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces, Reproduction
from confed.privacy.filters import Chain
from confed.privacy.laplace import LaplaceRows
from confed.server.selection import Selection
from confed.server.strategies import GraphMean, Neighbourhood
from confed.server.strategies.graph import TARGET

_ITEMS, _USER = "mlp_items", "mlp_user"


class GPFedRecReproduction(Reproduction):
    """Faithfulness to flaws of published code, off by default."""

    graph_by_distance: bool = False
    """Link the clients whose tables are least alike."""


class GPFedRecConfig(FederatedConfig):
    learning_rate: float = Field(default=0.1, gt=0)
    """Step size of the client's network."""
    rate_factor: float = Field(default=80.0, gt=1)
    """η: the item table is stepped with learning_rate · (items · η − 1), the client's vector with learning_rate ·
    (η / fraction − 1)."""
    near: float = Field(default=1.0, ge=0)
    """Weight of the term that keeps a client's table near the mean of its neighbours'."""
    threshold: float = Field(default=1.0, ge=0)
    """Neighbours are more alike than the mean over all pairs, times this."""
    neighbours: int | None = Field(default=None, ge=1)
    """Link so many nearest clients instead, of whom oneself is one."""
    layers: int = Field(default=1, ge=1)
    """How often means over neighbours are taken."""
    noise_scale: float = Field(default=0.0, ge=0)
    """Scale of the Laplace noise on every number of the table that is sent; 0 is none."""
    reproduction: GPFedRecReproduction = GPFedRecReproduction()
    """Flaws of published code to reproduce, such as reproduction.graph_by_distance."""

    @property
    def filters(self) -> Chain:
        own = (LaplaceRows(_ITEMS, None, self.noise_scale),) if self.noise_scale else ()
        return Chain((*super().filters.filters, *own))

    @property
    def tower(self) -> tuple[int, ...]:
        """[2d, d, d/2, d/4] with the input width left out."""
        return (self.dim, max(self.dim // 2, 1), max(self.dim // 4, 1))

    @property
    def neighbourhood(self) -> Neighbourhood:
        by: Literal["similarity", "distance"] = "distance" if self.reproduction.graph_by_distance else "similarity"
        return Neighbourhood(self.neighbours, self.threshold, by, self.layers)

    def step(self, backbone: NeuMF, items: int) -> Step:
        rate = self.learning_rate
        rates = {spec.name: rate for spec in backbone.params}
        rates[_USER] = rate * self.rate_factor / self.fraction - rate
        rates[_ITEMS] = rate * items * self.rate_factor - rate
        return Step(rates, (self.loss,), dense=(Near(_ITEMS, TARGET, self.near),))


class GPFedRec(DeviceMethod):
    name = "gpfedrec"
    title = "GPFedRec: item tables kept near the mean of similar clients'"
    citation = "Zhang et al., GPFedRec: Graph-Guided Personalization for Federated Recommendation, KDD 2024"
    config_class = GPFedRecConfig
    defaults: ClassVar = {"filmtrust": {"learning_rate": 0.05}}
    discloses = (
        "each client's whole item table by itself, and who is like whom, which the server finds by them; to clients, "
        "the mean of their neighbours' tables, of whom there may be one"
    )

    def pieces(self, config: GPFedRecConfig, items: int) -> Pieces:
        backbone = NeuMF(items, config.dim, config.tower, "mlp", normal(1.0), nets="private")
        phase = config.phase(config.step(backbone, items))
        return Pieces(
            backbone=backbone,
            procedure=Procedure((phase,), config.train_negatives),
            strategy=GraphMean(_ITEMS, (items, config.dim), config.neighbourhood),
            selection=Selection(config.fraction),
            view="local",
        )
