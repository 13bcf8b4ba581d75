"""Fed3CR: consistency- and complementarity-aware consensus enhancement (Mi et al., 2025).

A client scores with the sum of two item tables: the shared one, C, reshaped by a matrix that a shared network makes
from what the client likes (ACE: clients/backbones/dual.py), and its own, V, which it keeps for ever. Two terms on whole
tables (clients/objectives/dual.py) make both rank items alike (L_a) and keep their features uncorrelated (L_o). The
server averages C and the network. It plugs into other methods: `backbone` says whose client scores with the sum.

`variant` names the ablations of table III: C0 has neither ACE nor terms (FedRAP without its regularisers), C1 has ACE
alone, C2 L_a, C3 L_o, C4 both terms without ACE, C5 ACE with L_a, C6 ACE with L_o (which of C2 to C4 is which is
inferred, the marks are missing in our copy). `ace`, `consistency` and `complementarity` change one part of a variant: a
learned matrix for everybody in place of ACE (table IV), and what the two terms are compared with (figure 4).

No code is published, and the paper leaves much open (D-19 to D-30): three layers with ReLU;
prototypes carry gradient; top-one probabilities are a softmax; E in L_o is divided by the number of items; everybody
takes part; rates shrink as in FedRAP. Algorithm 1 does not step the user vector; here it is stepped. Rates, initial
values, the weights of the terms and what α does were searched for (docs/fed3cr.md): the paper sets α, which stands in
none of its formulas, to 10; here W = I + α F with α = 1, and W = 10 F learns more slowly under `paper` (faster under
`strict`). Tables begin with deviation 0.1, not with D-30's 0.01, because cosines of tiny rows have huge gradients; τ_a
is 0.2, not D-22's 1. The distance of the consensus from the clients is measured for one round, in the report, and not
logged every round: a server that sums does not know it.

On PFedRec the head is stepped before the tables, as PFedRec does; on FedRAP its two terms, its decay and its stopping
rule stay, with FedRAP's own defaults (the rule looks at the whole loss, L_a included). On FedNCF the two item tables
are one of double width. All of them are stepped by SGD, averaged over participants and scored under the `global` view,
which is not how FedMF, FedNCF and PFedRec are run alone. D-26's second form of a learned transfer, a network of two
layers, is not built.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from confed.clients.backbones import (
    AdaptiveTransfer,
    Backbone,
    Dot,
    DualTable,
    LearnedTransfer,
    LinearHead,
    NeuMF,
    NoTransfer,
    Transfer,
)
from confed.clients.objectives import DenseTerm
from confed.clients.objectives.dual import AlikeRows, Contrast, FarApart, Independent, ListNet, Orthogonal, TopOne
from confed.clients.procedures import Procedure, Step
from confed.initial import normal
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces
from confed.methods.fedrap import FedRAPConfig
from confed.server.selection import Selection
from confed.server.strategies import Average

Ace = Literal["off", "ace", "consensus", "unified"]
Consistency = Literal["none", "La", "Ls", "Lc"]
Complementarity = Literal["none", "Lo", "L2", "Lm"]

VARIANTS: dict[str, tuple[Ace, Consistency, Complementarity]] = {
    "C0": ("off", "none", "none"),
    "C1": ("ace", "none", "none"),
    "C2": ("off", "La", "none"),
    "C3": ("off", "none", "Lo"),
    "C4": ("off", "La", "Lo"),
    "C5": ("ace", "La", "none"),
    "C6": ("ace", "none", "Lo"),
    "full": ("ace", "La", "Lo"),
}


class Fed3CRConfig(FederatedConfig):
    backbone: Literal["fedmf", "fedncf", "pfedrec", "fedrap"] = "fedmf"
    """Whose client scores with the sum of the tables; fedmf, a user vector, is the paper's own."""
    variant: Literal["C0", "C1", "C2", "C3", "C4", "C5", "C6", "full"] = "full"
    """The whole method, or an ablation of it."""
    ace: Ace | None = None
    """How the shared table is reshaped, in place of what the variant says."""
    consistency: Consistency | None = None
    """The term that makes the views rank items alike, in place of what the variant says."""
    complementarity: Complementarity | None = None
    """The term that keeps the views from saying the same, in place of what the variant says."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Step size of user vectors, heads and networks."""
    item_rate: float = Field(default=100.0, gt=0)
    """Step size of both item tables."""
    local_epochs: int = Field(default=10, ge=1)
    """Passes over a client's rows in one round."""
    batch_size: int = Field(default=2048, ge=1)
    """Rows per local step."""
    batch_decay: float = Field(default=0.95, gt=0, le=1)
    """What rates are multiplied by after every batch; anew every round."""
    round_decay: float = Field(default=0.97, gt=0, le=1)
    """What rates are multiplied by after every round."""
    layers: int = Field(default=3, ge=1, le=6)
    """Layers of the network that makes the transfer matrix. This and the next three go with ACE."""
    alpha: float = Field(default=1.0, gt=0)
    """α: what the generated matrix is multiplied by."""
    residual: bool = True
    """Add the generated matrix to the identity, so that the shared table begins as it is."""
    detach_prototypes: bool = False
    """Let no gradient flow through the prototypes to the tables."""
    consistency_weight: float = Field(default=0.1, ge=0)
    """β_a."""
    complementarity_weight: float = Field(default=0.1, ge=0)
    """β_o."""
    temperature: float = Field(default=0.2, gt=0)
    """τ_a of the softmax in L_a."""
    top_one: TopOne = "softmax"
    """How cosines become probabilities in L_a."""
    divergence: bool = False
    """L_a as symmetric Kullback-Leibler divergence: without the entropies in its cross-entropy."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial shared table."""
    own_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial own table. Cosines of tiny rows have huge gradients, so not near 0."""
    user_deviation: float = Field(default=0.3, gt=0)
    """Standard deviation of the initial user vector, on fedmf; on fedncf it is init_deviation."""

    @property
    def parts(self) -> tuple[Ace, Consistency, Complementarity]:
        ace, consistency, complementarity = VARIANTS[self.variant]
        return self.ace or ace, self.consistency or consistency, self.complementarity or complementarity

    def transfer(self, width: int) -> Transfer:
        ace = self.parts[0]
        if ace == "off":
            return NoTransfer()
        if ace == "ace":
            return AdaptiveTransfer(
                width, self.layers, self.alpha, residual=self.residual, detach_prototypes=self.detach_prototypes
            )
        return LearnedTransfer(width, unified=ace == "unified")

    def scored_by(self, items: int) -> Backbone:
        if self.backbone == "fedmf":
            return Dot(items, self.dim, self.init_deviation, self.user_deviation)
        if self.backbone == "fedncf":
            tower = (self.dim, max(self.dim // 2, 1), max(self.dim // 4, 1))
            return NeuMF(items, self.dim, tower, "neumf", normal(self.init_deviation))
        return LinearHead(items, self.dim, deviation=self.init_deviation)

    def client(self, items: int) -> DualTable:
        backbone = self.scored_by(items)
        width = sum(spec.shape[1] for spec in backbone.named(role="item"))
        return DualTable(backbone, self.transfer(width), self.own_deviation)

    def dense(self) -> tuple[DenseTerm, ...]:
        _, consistency, complementarity = self.parts
        alike: dict[Consistency, DenseTerm] = {
            "La": ListNet(self.consistency_weight, self.temperature, self.top_one, divergence=self.divergence),
            "Ls": AlikeRows(self.consistency_weight),
            "Lc": Contrast(self.consistency_weight),
        }
        unlike: dict[Complementarity, DenseTerm] = {
            "Lo": Orthogonal(self.complementarity_weight),
            "L2": FarApart(self.complementarity_weight),
            "Lm": Independent(self.complementarity_weight),
        }
        terms = []
        if consistency != "none" and self.consistency_weight:
            terms.append(alike[consistency])
        if complementarity != "none" and self.complementarity_weight:
            terms.append(unlike[complementarity])
        return tuple(terms)

    def procedure(self, client: DualTable) -> Procedure:
        nets = {spec.name: self.learning_rate for spec in client.transfer.params}
        tables = {spec.name: self.item_rate for spec in client.named(role="item")}
        others = {
            spec.name: self.learning_rate for spec in client.params if spec.role != "item" and spec.name not in nets
        }
        if self.backbone == "pfedrec":
            return self._paced(Step(others, (self.loss,)), Step({**tables, **nets}, (self.loss,), dense=self.dense()))
        together = Step({**others, **tables, **nets}, (self.loss,), dense=self.dense())
        if self.backbone == "fedrap":
            phase = self._fedrap().descent()
            together = replace(together, terms=(self.loss, *phase.steps[0].terms[1:]))
            phases = (replace(phase, steps=(together,)),)
            return Procedure(phases, self.train_negatives, round_decay=self.round_decay)
        return self._paced(together)

    def _paced(self, *steps: Step) -> Procedure:
        phase = self.phase(*steps, batch_decay=self.batch_decay)
        return Procedure((phase,), self.train_negatives, round_decay=self.round_decay)

    def _fedrap(self) -> FedRAPConfig:
        """FedRAP with its own terms and decay of weights, at the pace set here."""
        pace = ("learning_rate", "item_rate", "local_epochs", "batch_size", "train_negatives")
        chosen: dict[str, Any] = {name: getattr(self, name) for name in (*pace, "batch_decay", "round_decay")}
        return FedRAPConfig(**chosen)


class Fed3CR(DeviceMethod):
    name = "fed3cr"
    title = "Fed3CR: a shared item table, reshaped for each client, and a personal one"
    citation = "Mi et al., Federated Consistency- and Complementarity-aware Consensus-enhanced Recommendation, 2025"
    config_class = Fed3CRConfig

    def published_as(self, config: Fed3CRConfig) -> str | None:
        both = bool(config.consistency_weight and config.complementarity_weight)
        whole = config.parts == VARIANTS["full"] and both and config.backbone == "fedmf"
        return self.name if whole else None

    def pieces(self, config: Fed3CRConfig, items: int) -> Pieces:
        client = config.client(items)
        shared = [spec.name for spec in client.named(scope="shared")]
        return Pieces(
            backbone=client,
            procedure=config.procedure(client),
            strategy=Average(dict.fromkeys(shared, "participants")),
            selection=Selection(config.fraction),
            view="global",
        )
