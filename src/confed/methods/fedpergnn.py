"""FedPerGNN: a federated graph neural network framework for privacy-preserving personalisation (Wu et al. 2022).

A client has a graph of itself, its items, and others who have these items too, whose vectors a third party hands out
without saying whose they are: clients send it tokens of their items that only they can read. Scores are those of a
small graph network (`clients/backbones/user_graph.py`). `clients_per_turn` clients are served at once; each takes one
step of SGD on all of its rows, and the server averages what they send by their numbers of rows.

What is sent is protected: `pseudo_items` items that the client did not train get changes drawn like those of its own;
then all that it changed is clipped to length lr · `gradient_clip`, and gets Laplace noise of scale lr · `noise_scale`.

Deviations (D-10): the published code predicts ratings, divides them by 100 and makes whole numbers of them, and masks a
client's real items in place of the missing ones; neighbours' attention has no softmax there, and noise is added to the
one model of a central simulation. Here rows are scored by cross-entropy with sampled negatives, masks and attention are
as the paper has them, and noise is every client's own. Of a client with more than `history` items the first by number
are in its graph, and only these are matched with those of others.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from confed.clients.backbones import UserGraph
from confed.clients.graph_step import GraphStep
from confed.clients.procedures import Procedure
from confed.messages import Over
from confed.methods.devices import DeviceConfig, DeviceMethod, Pieces
from confed.privacy.filters import Chain, Filter
from confed.privacy.laplace import ClippedLaplace
from confed.privacy.pseudo import PseudoItems
from confed.server.selection import Selection
from confed.server.strategies import Average, Expanded


class FedPerGNNConfig(DeviceConfig):
    learning_rate: float = Field(default=0.1, gt=0)
    """Step size of all parameters."""
    train_negatives: int = Field(default=4, ge=1)
    """Sampled negatives per positive, redrawn every round."""
    clients_per_turn: int = Field(default=32, ge=1)
    """Clients that are served at once, after whom the server averages."""
    history: int = Field(default=100, ge=1)
    """Items of a client that its graph has at most."""
    neighbours: int = Field(default=100, ge=1)
    """Others who have an item, in the graph, at most."""
    expand: bool = True
    """Whether clients send tokens of their items, so that they are sent others' vectors."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Share of the numbers of u and of scored items that are dropped in training."""
    gradient_clip: float = Field(default=0.1, ge=0)
    """A client's gradient is clipped to this length; 0: it is not."""
    noise_scale: float = Field(default=0.2, ge=0)
    """Scale of the Laplace noise on every number of the gradient; 0 is none."""
    pseudo_items: int = Field(default=1000, ge=0)
    """Items that get changes of which none is the client's."""

    @model_validator(mode="after")
    def _noise_has_a_clip(self) -> Self:
        if self.noise_scale and not self.gradient_clip:
            raise ValueError("noise on a gradient of any length hides nothing: set noise_scale=0 as well")
        return self

    @property
    def filters(self) -> Chain:
        own: list[Filter] = [PseudoItems("items", self.pseudo_items)] if self.pseudo_items else []
        if self.gradient_clip:
            lengths = self.learning_rate * self.gradient_clip, self.learning_rate * self.noise_scale
            own.append(ClippedLaplace(*lengths))
        return Chain((*own, *super().filters.filters))


class FedPerGNN(DeviceMethod):
    name = "fedpergnn"
    title = "FedPerGNN: a graph network around each user"
    citation = "Wu et al., A Federated Graph Neural Network Framework for Privacy-Preserving Personalization, 2022"
    config_class = FedPerGNNConfig
    discloses = (
        "every client's vector, and the number of rows it trains on; with expand, to the third party, which the server "
        "plays here, which clients have the same items, under tokens that stay the same in all rounds: how many have a "
        "token may tell which popular item it is; and to clients, how many others have each of their items, and these "
        "others' vectors"
    )

    def pieces(self, config: FedPerGNNConfig, items: int) -> Pieces:
        backbone = UserGraph(items, config.dim, config.history)
        shared = [spec.name for spec in backbone.named(scope="shared", personal=False)]
        plan: dict[str, Over] = dict.fromkeys(shared, "samples")
        visit = GraphStep(tuple(spec.name for spec in backbone.params), config.learning_rate, "sgd", config.dropout)
        shape = (config.history, config.neighbours if config.expand else 1, config.dim)
        average, turn = Average(plan), config.clients_per_turn
        return Pieces(
            backbone=backbone,
            procedure=Procedure((visit,), config.train_negatives),
            strategy=Expanded("user", "neighbours", shape, average, turn, expand=config.expand),
            selection=Selection(config.fraction),
            view="global",
        )
