"""FedRAP: additive personalisation (Li et al., ICLR 2024).

A client scores with the sum of two item tables: C, which the server averages, and D_u, which it keeps for ever. All of
(w_u, b_u, C, D_u) take one joint SGD step a batch. Two terms shape the tables: one drives D_u away from C, one keeps C
sparse; their weights grow with the rounds, λ(t) = λ tanh(t / 10) and μ(t) = μ tanh(t / 10). Rates shrink by 0.95 after
every batch (anew each round) and by 0.97 after every round; a client stops before its tenth epoch when its loss has
settled.

Deviations: the curriculum is the paper's; the published code computes it and then uses constant weights, because its
loss reads other attributes (`reproduction.dead_schedule` restores that). The terms look at the rows of the batch, as
the code does; `terms=table` is the paper's form on whole tables (D-14). The round is chosen on validation data, where
the code chooses it on the test set. Defaults are the readme's command for MovieLens-100K, the only one published, but
for λ: with the code's 0.1 the term that drives the tables apart wins. In every step it multiplies the distance of a row
by 1 + 2 λ rate / (n d) through D_u alone; over 100 rounds that is about exp(13,000 λ / n) for a client with n rows,
e^15 for those with the fewest, and the mean of C carries it to everybody (MovieLens-100K, `paper`, seed 0: validation
HR@10 falls from 70 in round 10 to 17 in round 40, and a client's loss passes 1e9 in round 47). With 0.005 it is e^0.7.
With `terms=table` the terms are sums over whole tables, as printed: a step multiplies the distance by 1 + 4 λ rate,
which the default rates bear for λ near 1e-6 and not for the default λ.

Further deviations: tables begin with deviation 0.01, the code's, plain embeddings, with 1 (docs/fed3cr.md has both). A
client stops by the losses of two single epochs, means over batches; the code never resets its sums between epochs, and
so compares means over all epochs so far. The nuclear norm is divided by the rows of the batch, as the first two norms
are; the code's is not. Not built: noise on what is uploaded, which the paper has and the code has not, and the code's
count of entries of C below 1e-4.

Of all methods this one gains most from the leak of the `paper` protocol: D_u is never averaged away (decisions.md
"Training negatives").
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from confed.clients.backbones import Additive
from confed.clients.objectives import DenseTerm, Term
from confed.clients.objectives.additive import Apart, ApartWhole, Curriculum, Small, SparseWhole
from confed.clients.procedures import Phase, Procedure, Step
from confed.methods.devices import DeviceMethod, FederatedConfig, Pieces, Reproduction
from confed.server.selection import Selection
from confed.server.strategies import Average


class FedRAPReproduction(Reproduction):
    dead_schedule: bool = False
    """Constant weights of the two terms from the first round on, as in the published code."""


class FedRAPConfig(FederatedConfig):
    learning_rate: float = Field(default=1e-4, gt=0)
    """Step size of w_u and b_u."""
    item_rate: float = Field(default=1000.0, gt=0)
    """Step size of both item tables."""
    local_epochs: int = Field(default=10, ge=1)
    """Passes over a client's rows in one round, at most."""
    tolerance: float = Field(default=1e-4, ge=0)
    """A client stops when its loss changes by less than this part from one epoch to the next; 0 never stops."""
    batch_size: int = Field(default=2048, ge=1)
    """Rows per local step."""
    independence: float = Field(default=0.005, ge=0)
    """λ: weight of the term that drives the two tables apart; unbounded below, see the module."""
    sparsity: float = Field(default=1e-3, ge=0)
    """μ: weight of the term that keeps the shared table small."""
    regulariser: Literal["l1", "l2", "max", "nuclear", "none"] = "l1"
    """What small means."""
    terms: Literal["batch", "table"] = "batch"
    """Whether the two terms look at the rows of the batch or at whole tables: then with l1 only, and as sums over all
    entries, so that with the default rates both weights have to be near 1e-6 (module)."""
    weight_decay: float = Field(default=1e-6, ge=0)
    """Of all parameters."""
    batch_decay: float = Field(default=0.95, gt=0, le=1)
    """What rates are multiplied by after every batch; anew every round."""
    round_decay: float = Field(default=0.97, gt=0, le=1)
    """What rates are multiplied by after every round."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial item tables."""
    reproduction: FedRAPReproduction = FedRAPReproduction()
    """Flaws of published code to reproduce, such as reproduction.dead_schedule."""

    @model_validator(mode="after")
    def _one_norm_of_whole_tables(self) -> Self:
        if self.terms == "table" and self.regulariser not in ("l1", "none"):
            raise ValueError(f"regulariser = {self.regulariser}: with terms = table there is l1 only, or none")
        return self

    def curriculum(self, final: float) -> Curriculum:
        return Curriculum(final, constant=self.reproduction.dead_schedule)

    def batch_terms(self) -> tuple[Term, ...]:
        if self.terms == "table":
            return (self.loss,)
        shaping: list[Term] = []
        if self.independence:
            shaping.append(Apart("items", "own", self.curriculum(self.independence)))
        if self.sparsity and self.regulariser != "none":
            shaping.append(Small("items", self.curriculum(self.sparsity), self.regulariser))
        return (self.loss, *shaping)

    def table_terms(self) -> tuple[DenseTerm, ...]:
        if self.terms == "batch":
            return ()
        shaping: list[DenseTerm] = []
        if self.independence:
            shaping.append(ApartWhole("items", "own", self.curriculum(self.independence)))
        if self.sparsity and self.regulariser != "none":
            shaping.append(SparseWhole("items", self.curriculum(self.sparsity)))
        return tuple(shaping)

    def descent(self) -> Phase:
        head = dict.fromkeys(("weight", "bias"), self.learning_rate)
        tables = dict.fromkeys(("items", "own"), self.item_rate)
        return self.phase(
            Step({**head, **tables}, self.batch_terms(), dense=self.table_terms()),
            weight_decay=self.weight_decay,
            batch_decay=self.batch_decay,
            tolerance=self.tolerance or None,
        )

    def procedure(self) -> Procedure:
        return Procedure((self.descent(),), self.train_negatives, round_decay=self.round_decay)


class FedRAP(DeviceMethod):
    name = "fedrap"
    title = "FedRAP: a shared item table and a personal one, added up"
    citation = "Li et al., Federated Recommendation with Additive Personalization, ICLR 2024"
    config_class = FedRAPConfig

    def pieces(self, config: FedRAPConfig, items: int) -> Pieces:
        return Pieces(
            backbone=Additive(items, config.dim, config.init_deviation),
            procedure=config.procedure(),
            strategy=Average({"items": "participants"}),
            selection=Selection(config.fraction),
            view="global",
        )
