"""MetaMF: meta matrix factorisation for federated rating predictions (Lin et al. 2020).

The server has a vector x_u of every client, and a generator that makes the client's whole model of it:

    c_u = x_u M,   h_k = ReLU(A_k c_u + a_k)             k = 1, 2, 3
    W, b  from h_1,   w, c  from h_2                      linear maps, reshaped
    V_u = left · right,  both from h_3                    a table of items of rank `rank`
    s_i = ReLU(V_u[i] W + b) · w + c

A device keeps nothing. It is sent V_u, W, b, w and c, and returns the gradient of its loss by all of them; the server
takes that back through the generator to M, all A_k and the maps, and x_u, and takes a step of Adam with weight decay
and a clipped gradient. Items are compared by the table that is made of the mean of all vectors.

Deviations: cross-entropy with sampled negatives in place of squared errors of ratings, as CoFedRec's authors have it.
The published code steps after 64 ratings of any users; here `clients_per_turn` clients are served at once, each with
all of its rows, and the generator steps once for all of them (D-12, decisions.md "metamf").
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from confed.clients.backbones import Perceptron
from confed.clients.objectives import BCE
from confed.clients.procedures import Phase, Procedure, Step
from confed.data.interactions import ONLY
from confed.data.shares import AnySplit
from confed.errors import NobodyNewError
from confed.messages.agreement import MOST_ROWS
from confed.methods.base import State, Terms
from confed.methods.devices import DeviceConfig, DeviceMethod, Pieces
from confed.ragged import Ragged
from confed.server.generator import Generator
from confed.server.selection import Selection
from confed.server.strategies import Generated


class MetaMFConfig(DeviceConfig):
    learning_rate: float = Field(default=1e-4, gt=0)
    """Step size of the server's Adam."""
    weight_decay: float = Field(default=1e-3, ge=0)
    """Of all that the server has, added to the gradient."""
    gradient_clip: float = Field(default=5.0, gt=0)
    """A longer gradient is cut to this length."""
    clients_per_turn: int = Field(default=16, ge=1)
    """Clients that are served at once, after whom the server steps."""
    train_negatives: int = Field(default=4, ge=1)
    """Sampled negatives per positive, redrawn every round."""
    memory: int = Field(default=128, ge=1)
    """Width of c_u."""
    hidden: int = Field(default=512, ge=1)
    """Width of the generator's hidden layers."""
    rank: int = Field(default=8, ge=1)
    """Of the item tables that are made."""
    init_deviation: float = Field(default=1.0, gt=0)
    """Standard deviation of the initial vectors of clients; torch's own is 1."""

    def generator(self, items: int, layer: int) -> Generator:
        inner = {"inner": (self.dim, layer), "inner_bias": (layer,)}
        outer = {"outer": (layer,), "outer_bias": (1,)}
        return Generator(("items", (items, self.dim)), (inner, outer), self.dim, self.memory, self.hidden, self.rank)


class MetaMF(DeviceMethod):
    name = "metamf"
    title = "MetaMF: the server generates each client's model"
    citation = "Lin et al., Meta Matrix Factorization for Federated Rating Predictions, SIGIR 2020"
    config_class = MetaMFConfig
    defaults: ClassVar = {"filmtrust": {"learning_rate": 5e-4}}
    discloses = (
        "each client's gradient by itself, whose rows are those of its items and of others it drew; and the server "
        "knows a vector of every client, of which all that the client has is made"
    )

    def newcomers(
        self, terms: Terms, cut: AnySplit, state: State, number: int, histories: Ragged, domain: str = ONLY
    ) -> Tensor:
        """Nothing of a client's own enters its scores but the vector that the server learned of it."""
        raise NobodyNewError(
            "metamf serves only those it trained on: the server makes a client's model of a vector that it learned of "
            "the client in many rounds. Who is new, or was left out for too few items, takes ease, ials or fedrecon"
        )

    def pieces(self, config: MetaMFConfig, items: int) -> Pieces:
        layer = max(config.dim // 4, 1)
        backbone = Perceptron(items, config.dim, layer)
        gradient = Step({spec.name: 1.0 for spec in backbone.params}, (BCE(),))
        strategy = Generated(
            config.generator(items, layer),
            config.learning_rate,
            config.weight_decay,
            config.gradient_clip,
            config.clients_per_turn,
            config.init_deviation,
        )
        return Pieces(
            backbone=backbone,
            procedure=Procedure((Phase((gradient,), epochs=1, batch_size=MOST_ROWS),), config.train_negatives),
            strategy=strategy,
            selection=Selection(config.fraction),
            view="global",
        )
