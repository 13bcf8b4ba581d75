"""FedeRank: users decide how much of their positive feedback they disclose (Anelli et al. 2021).

Matrix factorisation with item biases, s_i = p_u · V[i] + b_i. A client that is visited draws as many pairs as it has
positives, i among these and j outside, and goes through them one after another, V and b as the server sent them:

    δ = 1 / (1 + exp(s_i − s_j)),        w = p_u
    p_u   ← p_u + lr (δ (V[i] − V[j]) − λ_u w)
    ΔV[j] ← ΔV[j] − δ w − λ_− V[j],      Δb[j] ← Δb[j] − δ
    ΔV[i] ← ΔV[i] + δ w − λ_+ V[i],      Δb[i] ← Δb[i] + δ        with probability π (`disclosed`)

It sends V + lr ΔV and b + lr Δb, and the server adds up what all changed. With π = 0 only negatives are told.

Deviation: the published client looks positives up by their index in place of their value, so that negatives may be
positives; here they are not.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from confed.clients.backbones import OffsetDot
from confed.clients.pairs import RankPairs
from confed.clients.procedures import Procedure
from confed.methods.devices import DeviceConfig, DeviceMethod, Pieces
from confed.server.selection import Selection
from confed.server.strategies import Average


class FedeRankConfig(DeviceConfig):
    disclosed: float = Field(default=1.0, ge=0, le=1)
    """π: the share of positive feedback that a client discloses."""
    decay: float = Field(default=0.05, ge=0)
    """λ of users and positive items, in multiples of the learning rate."""
    negative_decay: float = Field(default=0.005, ge=0)
    """λ of negative items, likewise."""
    init_deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of all initial values."""

    def visit(self) -> RankPairs:
        decay, rate = self.decay * self.learning_rate, self.learning_rate
        decays = (decay, decay, self.negative_decay * self.learning_rate)
        return RankPairs("user", "items", "item_bias", rate, decays, self.disclosed)


class FedeRank(DeviceMethod):
    name = "federank"
    title = "FedeRank: pairwise ranking, positive feedback disclosed as far as users wish"
    citation = "Anelli et al., FedeRank: User Controlled Feedback with Federated Recommender Systems, ECIR 2021"
    config_class = FedeRankConfig
    discloses = "nothing beside the upload, in which rows that changed are items of the client, and others it was drawn"

    def negatives(self, config: Any) -> int:
        return 1

    def pieces(self, config: FedeRankConfig, items: int) -> Pieces:
        return Pieces(
            backbone=OffsetDot(items, config.dim, config.init_deviation),
            procedure=Procedure((config.visit(),), self.negatives(config), draw="pairs"),
            strategy=Average({"items": "sum", "item_bias": "sum"}),
            selection=Selection(config.fraction),
            view="global",
        )
