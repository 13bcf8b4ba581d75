"""PerFedRec: personalised federated recommendation via joint representation learning and clustering (Luo et al. 2022).

The server has a vector p_u of every client, and item tables: one of all and one of each of K groups of clients, who are
grouped by their vectors. s_i = p_u · V[i]. A participant begins with its group's table and draws |D_u| pairs of a
positive, any of its own, and an item outside. p_u and its positives' vectors go `layers` times around the graph of the
client and the positives it drew, E ← A E with A the row-normalised adjacency with self-loops, of which entries are
dropped with probability `dropout`; of E and all passes the mean is taken. Then one step of Adam on

    mean −log σ(s_i − s_j) + 10⁻⁵ · Σ squared lengths / (2 · 1024)

It sends its table, with Laplace noise on `noisy_rows` random rows, and p_u. The server takes the mean of all tables,
and of each group's. Who is scored takes the mean of the scores by everybody's table, the group's, and, if it took part
in the round, its own (view `ensemble`), without any passes.

Half of a round's `most` participants are drawn evenly, half by the size of their groups.

Deviations: passes are chained; the published code multiplies the same E three times (`reproduction.layers_apart`). In
its graph an item has all its users; here a client knows only itself. Negatives are outside the graph and stay as they
are, where that code quarters them. Each client has an optimiser of its own, where that code has one for all. A group's
model has the client's one vector, not a mean of copies of it. There are no attributes.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from confed.clients.backbones import Blended
from confed.clients.procedures import Procedure
from confed.clients.propagating import RankAround
from confed.methods.devices import DeviceConfig, DeviceMethod, Pieces
from confed.privacy.filters import Chain
from confed.privacy.laplace import LaplaceRows
from confed.server.selection import HalfByGroup
from confed.server.strategies import GroupMeans


class PerFedRecReproduction(BaseModel):
    """Faithfulness to flaws of published code, off by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers_apart: bool = False
    """Every pass around the graph begins with the vectors as they are."""


class PerFedRecConfig(DeviceConfig):
    learning_rate: float = Field(default=0.01, gt=0)
    """Step size of all that is stepped."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """Of the one step that a client takes in a round."""
    most: int = Field(default=128, ge=1)
    """At most so many clients take part."""
    groups: int = Field(default=5, ge=1)
    """Into how many clients are grouped."""
    layers: int = Field(default=3, ge=0)
    """Passes around a client's graph."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the graph's entries that are dropped."""
    decay: float = Field(default=1e-5, ge=0)
    """Weight of the squared lengths of the vectors."""
    common_start: bool = False
    """Let all clients' vectors begin with the same numbers, as those of methods do whose clients keep them."""
    noise_scale: float = Field(default=0.02, ge=0)
    """Scale of the Laplace noise on some rows of what is sent; 0 is none."""
    noisy_rows: int = Field(default=100, ge=1)
    """How many rows get noise, drawn with replacement."""
    reproduction: PerFedRecReproduction = PerFedRecReproduction()
    """Flaws of published code to reproduce, such as reproduction.layers_apart."""

    @property
    def filters(self) -> Chain:
        own = (LaplaceRows("items", self.noisy_rows, self.noise_scale),) if self.noise_scale else ()
        return Chain((*super().filters.filters, *own))

    def visit(self) -> RankAround:
        chained = not self.reproduction.layers_apart
        step = ("user", "items"), self.learning_rate, self.optimiser
        return RankAround(*step, self.layers, chained, self.dropout, self.decay)


class PerFedRec(DeviceMethod):
    name = "perfedrec"
    title = "PerFedRec: a model of all, of one's group and one's own, together"
    citation = (
        "Luo et al., Personalized Federated Recommendation via Joint Representation Learning and Clustering, 2022"
    )
    config_class = PerFedRecConfig
    discloses = (
        "every client's vector, by which the server groups them, and in rows without noise which items are its own or "
        "drawn; to the members of a group of whom one took part, that one's table"
    )

    def negatives(self, config: PerFedRecConfig) -> int:
        return 1

    def pieces(self, config: PerFedRecConfig, items: int) -> Pieces:
        return Pieces(
            backbone=Blended(items, config.dim, one_start=config.common_start),
            procedure=Procedure((config.visit(),), self.negatives(config), draw="pairs"),
            strategy=GroupMeans("items", "user", "share", config.groups),
            selection=HalfByGroup(config.fraction, config.most),
            view="ensemble",
        )
