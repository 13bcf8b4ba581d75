"""FedRecon: federated reconstruction, partially local federated learning (Singhal et al. 2021).

Matrix factorisation with biases, s_i = p_u · V[i] + b_i + b_u + μ. When a client is visited it draws p_u and b_u
anew, reconstructs them from its own rows with V, b and μ held fixed, and then steps V, b and μ with its own
part held fixed:

    1. `reconstruction_epochs` of SGD on p_u and b_u, over the support rows;
    2. `local_epochs` of SGD on V, b and μ, over the query rows (`jointly`: on everything).

Support and query are the same rows, or two halves of them (`split`). The server adds the mean of the changes, weighted
by the numbers of query rows. Whoever is served reconstructs in the same way first (view `reconstructed`), somebody new
like everybody else.

With `reinit_every` = 2 clients draw anew in every second round of the run only, and keep what they have in between, as
CoFedRec's authors ran it (D-11).

Deviations: cross-entropy with sampled negatives in place of squared errors of ratings, as all methods have here. The
halves of `split` are of rows, not of batches. Changes that are not finite end the run instead of counting nothing. Who
is served reconstructs with the same negatives in every round.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from confed.clients.backbones import BiasedDot, Renewal
from confed.clients.procedures import Part, Phase, Procedure, Step
from confed.messages import Over
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces
from confed.server.selection import Selection
from confed.server.strategies import Average

_OWN = ("user", "user_bias")
_SHARED = ("items", "item_bias", "mean")


class FedReconConfig(FederatedConfig):
    learning_rate: float = Field(default=0.1, gt=0)
    """Step size of all parameters, in either phase."""
    local_epochs: int = Field(default=1, ge=1)
    """Passes over its rows in which a visited client steps what is shared."""
    reconstruction_epochs: int = Field(default=1, ge=1)
    """Passes over its rows in which a visited client reconstructs its own part."""
    serving_epochs: int = Field(default=5, ge=1)
    """The same before a client is scored."""
    jointly: bool = False
    """Step the client's own part together with what is shared in the second phase."""
    split: bool = False
    """Reconstruct on one half of the rows, and step what is shared on the other."""
    reinit_every: int = Field(default=1, ge=1)
    """Rounds of the run after which clients draw their own part anew."""
    server_rate: float = Field(default=1.0, gt=0)
    """Step size of the server, which takes the mean of the changes for a gradient."""
    init_bound: float = Field(default=0.05, gt=0)
    """Vectors begin uniformly within plus and minus this."""

    def procedure(self) -> Procedure:
        support: Part = "support" if self.split else "all"
        query: Part = "query" if self.split else "all"
        shared = (*_SHARED, *_OWN) if self.jointly else _SHARED
        phases = (
            self._stepping(_OWN, self.reconstruction_epochs, support),
            self._stepping(shared, self.local_epochs, query),
        )
        return Procedure(phases, self.train_negatives, reconstruct=(self._stepping(_OWN, self.serving_epochs, "all"),))

    def _stepping(self, names: tuple[str, ...], epochs: int, part: Part) -> Phase:
        return Phase((Step(dict.fromkeys(names, self.learning_rate), (self.loss,)),), epochs, self.batch_size, part)


class FedRecon(DeviceMethod):
    name = "fedrecon"
    title = "FedRecon: private parameters reconstructed at every visit"
    citation = "Singhal et al., Federated Reconstruction: Partially Local Federated Learning, NeurIPS 2021"
    config_class = FedReconConfig
    rounds: ClassVar[int] = 500
    discloses = "the number of rows each client trains on (the weights of the average)"

    def published_as(self, config: FedReconConfig) -> str | None:
        """As CoFedRec's authors ran it."""
        return self.name if config.reinit_every == 2 and not (config.jointly or config.split) else None

    def pieces(self, config: FedReconConfig, items: int) -> Pieces:
        plan: dict[str, Over] = dict.fromkeys(_SHARED, "samples")
        return Pieces(
            backbone=BiasedDot(items, config.dim, Renewal(config.reinit_every, config.init_bound)),
            procedure=config.procedure(),
            strategy=Average(plan, config.server_rate),
            selection=Selection(config.fraction),
            view="reconstructed",
        )
