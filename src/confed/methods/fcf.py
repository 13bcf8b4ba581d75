"""FCF: federated collaborative filtering (Ammad-ud-din et al. 2019).

Implicit matrix factorisation by alternating least squares, in which only the users' half is solved. A client has the
preference y_i = 1 for its items and 0 for others, with confidence c_i = 1 + α and 1. It solves for its vector, with V
as the server sent it, and sends the gradient of *every* item row:

    p_u    = (Vᵀ C V + λ I)⁻¹ Vᵀ C y
    f(u,i) = c_i (y_i − p_u · V[i]) p_u

The server steps V by Adam with the gradient −2 Σ_u f(u,·) + 2 λ V. Who is served solves for p_u with the V of the
moment (view `reconstructed`); nothing is kept, and somebody new is served like everybody else.

Deviations: the paper prints neither α, λ nor the server's rate; α = 40, λ = 0.1 and 0.01 are chosen (D-8).
"""

from __future__ import annotations

from pydantic import Field

from confed.clients.backbones import Dot, Renewal
from confed.clients.procedures import Procedure
from confed.clients.solving import Solve
from confed.methods.devices import DeviceConfig, DeviceMethod, Pieces
from confed.server.selection import Selection
from confed.server.strategies import ServerAdam


class FCFConfig(DeviceConfig):
    learning_rate: float = Field(default=0.01, gt=0)
    """Step size of the server's Adam."""
    alpha: float = Field(default=40.0, ge=0)
    """α: how much surer a client is of an item that it has than of one that it has not."""
    regularisation: float = Field(default=0.1, gt=0)
    """λ, of users and items."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors."""


class FCF(DeviceMethod):
    name = "fcf"
    title = "FCF: vectors in closed form on the device, gradients of all items to the server"
    citation = "Ammad-ud-din et al., Federated Collaborative Filtering for Privacy-Preserving Recommendation, 2019"
    config_class = FCFConfig
    discloses = "nothing beside the gradient, whose largest rows are those of the client's items"

    def pieces(self, config: FCFConfig, items: int) -> Pieces:
        visit = Solve("user", "items", config.alpha, config.regularisation)
        return Pieces(
            backbone=Dot(items, config.dim, config.init_deviation, renewal=Renewal(1, config.init_deviation)),
            procedure=Procedure((visit,), negatives=0, reconstruct=(visit,)),
            strategy=ServerAdam("items", config.learning_rate, config.regularisation),
            selection=Selection(config.fraction),
            view="reconstructed",
        )
