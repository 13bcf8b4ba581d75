"""CoFedRec: co-clustering federated recommendation (He et al., WWW 2024), as a plug-in on any backbone.

Two pieces on top of a backbone: the strategy `CoCluster` (each round the clients that agree with a random user on a
random category of items get their own mean) and the term `SupCon` (clients pull items of one category together). The
backbone is PFedRec's by default; with `backbone=fedmf` or `fedncf` both pieces act on its item tables, FedNCF's two
side by side (D-16). Clients keep their tables between rounds unless the server pushes another.

`variant` gives the ablations of table 2: `origin` is the backbone alone, `user-p` only the groups, `item-s` a plain
similarity term and `item-sc` the contrastive term without groups, `full` both. Those without groups average the tables
for everybody, and are judged in the `local` view like their backbone; those with groups in the view `pushed`: members
of the similar group with the group's table, all others with their own. Other views are reported beside it.

Deviations: cross-entropy in logit space (D-1); the contrastive term in the code's form, not the printed one (D-15;
`supcon=paper`), without the 1e-6 in its denominators; empty categories are never drawn; the elbow is taken on points
(rank, score), as the printed formula on scalars has none. Categories travel as 8 or 16 bits an item, not ⌈log2 K⌉.
FedMF and FedNCF take plain SGD steps here, their items with the rate learning_rate · items · η, because group means of
single tables replace their own aggregation rules; η and the learning rate are PFedRec's, not tuned for them. On ml-100k
λ is 0.01: the paper's own table of weights has its best at 0.005; here validation prefers 0.01 to it on each of three
seeds, and the published HR is missed by 0.8 (under `strict` 0.005 is two points better on one seed; docs/cofedrec.md).
All other defaults per dataset are the paper's.

The contrastive term is dense and takes most of the time. `schedule=every-step` is the published procedure.
`once-per-round` takes its gradient at the start of the round, times the number of steps the client is about to take:
members of the similar group begin with the same table, so one gradient serves them all. The schedule holds for `item-s`
as well. Where anchors are drawn (many items), one draw a step serves all clients.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from confed.clients.backbones import Backbone, Dot, LinearHead, NeuMF
from confed.clients.objectives import DenseTerm, ItemSimilarity, Schedule, SupCon
from confed.clients.procedures import Procedure, Step
from confed.initial import normal
from confed.messages import Over
from confed.methods.devices import DeviceMethod, Pieces, ScaledItemsConfig
from confed.methods.rates import AS_PUBLISHED, PAPERS
from confed.protocol import View
from confed.server.selection import Selection
from confed.server.strategies import AnyStrategy, Average, Categorised, CoCluster

_INIT_DEVIATION = 0.1
"""Of FedMF's and FedNCF's vectors, as in those methods."""


class CoFedRecConfig(ScaledItemsConfig):
    move: ClassVar[float] = 300.0
    slowest: ClassVar[float] = PAPERS  # clients outside of a round's group keep their tables, which no mean dilutes
    local_epochs: int = Field(default=2, ge=1)
    """Passes over a client's rows in one round; 2 as in the published code (PFedRec's has 1)."""
    backbone: Literal["pfedrec", "fedmf", "fedncf"] = "pfedrec"
    """The method that CoFedRec is plugged into."""
    variant: Literal["origin", "user-p", "item-s", "item-sc", "full"] = "full"
    """The whole method, or an ablation of it."""
    clusters: int = Field(default=30, ge=1)
    """K: item categories that the server looks for; at most one for each item. `origin` has none."""
    categories_per_round: int = Field(default=1, ge=1, le=100)
    """Categories by which clients are divided in one round, each within the groups of the one before (`user-p`,
    `full`)."""
    contrast: float = Field(default=0.005, ge=0)
    """λ: weight of the contrastive term (`item-sc`, `full`), or of the similarity term in `item-s`. This and the next
    five do nothing in variants without a term."""
    temperature: float = Field(default=0.1, ge=0.025)
    """τ of the contrastive term; much smaller ones overflow in single precision."""
    supcon: Literal["code", "paper"] = "code"
    """The contrastive term as the published code has it, or as the paper prints it: on raw rows, which need a λ near
    1e-5 and take many times longer."""
    schedule: Schedule = "once-per-round"
    """Take the contrastive gradient anew at every step, or once a round."""
    supcon_anchors: int = Field(default=1024, ge=1)
    """Items drawn as anchors where there are more than supcon_exact."""
    supcon_exact: int = Field(default=4000, ge=1)
    """Up to so many items all are anchors."""
    virtual_ratio: float = Field(default=0.0, ge=0, le=10, allow_inf_nan=False)
    """Virtual ratings that a client adds for each of its own, with random labels."""

    @property
    def grouped(self) -> bool:
        return self.variant in ("user-p", "full")

    def dense(self, tables: tuple[str, ...]) -> tuple[DenseTerm, ...]:
        """The term of the variant on whole item tables."""
        if not self.contrast or self.variant in ("origin", "user-p"):
            return ()
        if self.variant == "item-s":
            return (ItemSimilarity(tables, self.contrast),)
        term = SupCon(
            tables,
            self.contrast,
            self.temperature,
            form=self.supcon,
            anchors=self.supcon_anchors,
            exact_up_to=self.supcon_exact,
        )
        return (term,)

    def client(self, items: int) -> Backbone:
        if self.backbone == "fedmf":
            return Dot(items, self.dim, _INIT_DEVIATION)
        if self.backbone == "fedncf":
            tower = (self.dim, max(self.dim // 2, 1), max(self.dim // 4, 1))
            return NeuMF(items, self.dim, tower, "neumf", normal(_INIT_DEVIATION))
        return LinearHead(items, self.dim)

    def procedure(self, backbone: Backbone, items: int) -> Procedure:
        """PFedRec steps its head first and its items after it, the others everything together."""
        tables = tuple(spec.name for spec in backbone.named(role="item"))
        others = {spec.name: self.learning_rate for spec in backbone.params if spec.role != "item"}
        rates = dict.fromkeys(tables, self.item_rate(items))
        steps = [Step(others, (self.loss,)), Step(rates, (self.loss,), dense=self.dense(tables))]
        if self.backbone != "pfedrec":
            steps = [Step({**others, **rates}, (self.loss,), dense=self.dense(tables))]
        phase = self.phase(*steps, schedule=self.schedule)
        return Procedure((phase,), self.train_negatives, virtual=self.virtual_ratio)

    def strategy(self, backbone: Backbone) -> AnyStrategy:
        """Groups of clients and item categories, only categories, or neither. Networks are averaged by samples."""
        tables = tuple(spec.name for spec in backbone.named(role="item"))
        nets: dict[str, Over] = {p.name: "samples" for p in backbone.named(scope="shared") if p.role != "item"}
        if self.grouped:
            return CoCluster(tables, self.clusters, Average(nets), categories_per_round=self.categories_per_round)
        everything = Average(nets | dict.fromkeys(tables, "participants"))
        return everything if self.variant == "origin" else Categorised(everything, tables, self.clusters)


class CoFedRec(DeviceMethod):
    name = "cofedrec"
    title = "CoFedRec: groups of clients by item category, contrastive items"
    citation = "He et al., Co-clustering for Federated Recommender System, WWW 2024"
    config_class = CoFedRecConfig
    discloses = "each client's item table, to be compared with others; FedNCF's backbone also the number of rows"
    defaults: ClassVar = {
        "ml-100k": {"contrast": 0.01, "temperature": 0.1, "clusters": 30, **AS_PUBLISHED},
        "ml-1m": {"contrast": 0.005, "temperature": 0.5, "clusters": 45, **AS_PUBLISHED},
        "filmtrust": {"contrast": 0.05, "temperature": 0.5, "clusters": 30, **AS_PUBLISHED},
        "lastfm-2k": {
            "learning_rate": 0.05,
            "contrast": 0.001,
            "temperature": 0.5,
            "clusters": 500,
            **AS_PUBLISHED,
        },
    }

    def published_as(self, config: CoFedRecConfig) -> str | None:
        whole = config.variant == "full" and config.contrast > 0 and config.supcon == "code"
        printed = whole and not config.virtual_ratio and config.categories_per_round == 1
        return self.name if printed and config.backbone == "pfedrec" else None

    def pieces(self, config: CoFedRecConfig, items: int) -> Pieces:
        client = config.client(items)
        view: View = "pushed" if config.grouped else "local"
        return Pieces(
            backbone=client.keeping_items() if config.grouped else client,
            procedure=config.procedure(client, items),
            strategy=config.strategy(client),
            selection=Selection(config.fraction),
            view=view,
        )
