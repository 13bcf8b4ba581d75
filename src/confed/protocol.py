"""How a number is obtained: two named protocols, and every switch by which they differ.

`paper` does what the published code of the PFedRec line does, so that figures can be compared with published ones.
It leaks: training negatives avoid the held-out items, and a model that learns nothing scores 94 (docs, "Why two
protocols"). `strict`, the default, is what our own claims rest on. Each switch can be set alone, so that the effect
of each can be measured.

Data of several domains is evaluated under `warm`, which is `strict` in every domain, or under `cold`: users who are new
to a domain (D-5).

`everything` holds nothing out (`--no-holdout`): a model for use, of which nothing is measured.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from confed.errors import ConfedError, unknown_name

View = Literal["local", "global", "pushed", "reconstructed", "ensemble"]
ALWAYS = 10
"""The cut-off that every summary has."""


class Protocol(BaseModel):
    """The switches. Values left unset are those of `strict`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "strict"
    neg_pool: Literal["unseen", "untrained"] = "untrained"
    """Training negatives of a user come from the items of none of its splits, or from all outside training."""
    dedupe: bool = True
    """Keep only the latest of a user's repeated interactions with one item."""
    split_ties: Literal["fixed", "seeded"] = "seeded"
    """Which of several interactions at the same instant is the latest: a fixed draw for all seeds, or a seeded one."""
    pseudo_time: Literal["published", "random"] = "random"
    """For data without time: the order the published loaders invent, or a seeded random hold-out."""
    candidates: Literal["halves", "independent"] = "independent"
    """Sampled candidates: one draw cut in two for validation and test, or a stream of its own for each."""
    negatives: int = Field(default=99, ge=1)
    """Sampled candidates per user beside the held-out item."""
    more_negatives: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Further rankings, each against so many sampled candidates; their metrics carry a prefix such as `neg999_`. A
    domain with too few items is without them."""
    shared_candidates: bool = False
    """Use the validation candidates for the test as well (FedRAP's code does)."""
    score_space: Literal["probability", "logit"] = "logit"
    """Rank float32 probabilities, which saturate and tie at 1, or logits."""
    rank_ties: Literal["lost", "expected"] = "expected"
    """A tie is lost by the held-out item, or counts as the expectation under random order."""
    select_metric: str = "ndcg@10"
    """The metric that chooses the round that is reported."""
    select_on: Literal["validation", "test"] = "validation"
    """Only reproductions of code that chooses its round on the test set say `test`."""
    select_ties: Literal["latest", "earliest"] = "earliest"
    view: View | None = None
    """Which parameters are scored; by default the method's own view."""
    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = (5, 10, 20)
    """The K at which metrics are reported, beside 10."""

    held_out: Literal["last items", "cold users", "nothing"] = "last items"
    """Of every user the last item and the one before; of some users of a domain, all they have there (CDRIB); or
    nothing."""
    population: Literal["shared", "all"] = "shared"
    """Of several domains: users with three items in all of them, or in one of them."""

    @property
    def of_domains(self) -> bool:
        """Whether this is a way to evaluate data of several domains."""
        return self.name in ("warm", "cold")

    @property
    def measures(self) -> bool:
        """Whether anything is held out."""
        return self.held_out != "nothing"

    @property
    def label(self) -> str:
        """The name, and every switch in which this differs from the protocol of that name."""
        base = PROTOCOLS[self.name]
        changed = [f for f in type(self).model_fields if f != "cutoffs" and getattr(self, f) != getattr(base, f)]
        return ", ".join([self.name, *(f"{name}={getattr(self, name)}" for name in changed)])

    @field_validator("select_metric")
    @classmethod
    def _known_metric(cls, metric: str) -> str:
        if not re.fullmatch(r"(hr|ndcg|mrr|recall|precision)@[1-9]\d*", metric):
            raise ValueError(f"{metric!r} is not one of hr, ndcg, mrr, recall, precision with @K, such as ndcg@10")
        return metric

    @field_validator("cutoffs", "more_negatives", mode="before")
    @classmethod
    def _one_or_many(cls, cutoffs: object) -> object:
        if isinstance(cutoffs, str):
            cutoffs = cutoffs.split(",")
        return cutoffs if isinstance(cutoffs, list | tuple) else (cutoffs,)

    @property
    def all_cutoffs(self) -> tuple[int, ...]:
        """The reported cut-offs, K = 10 (every summary has it) and the one that selects the round."""
        return tuple(sorted({*self.cutoffs, ALWAYS, int(self.select_metric.split("@")[1])}))

    def check_cutoffs(self, items: int) -> None:
        """K beyond the list that is ranked would count every user as a hit."""
        largest = max(self.all_cutoffs)
        fewest = 1 + min(self.negatives, *self.more_negatives) if self.more_negatives else 1 + self.negatives
        lower = "lower `cutoffs` or `select_metric`"
        if largest > items:
            remedy = lower if items >= ALWAYS else "it takes data with more items"
            raise ConfedError(
                f"K = {largest} is larger than the {items} items there are (K = 10 is always reported): {remedy}"
            )
        if largest > fewest:
            raise ConfedError(
                f"K = {largest} is larger than the {fewest} sampled candidates that are ranked (K = 10 is always "
                f"reported): {lower}, or raise `negatives` or `more_negatives`"
            )


STRICT = Protocol()
PAPER = Protocol(
    name="paper",
    neg_pool="unseen",
    dedupe=False,
    split_ties="fixed",
    pseudo_time="published",
    candidates="halves",
    score_space="probability",
    rank_ties="lost",
    select_metric="hr@10",
    select_ties="latest",
)
WARM = Protocol(name="warm", more_negatives=(999,))
COLD = Protocol(
    name="cold", held_out="cold users", population="all", negatives=999, cutoffs=(5, 10), select_metric="mrr@1000"
)
EVERYTHING = Protocol(name="everything", held_out="nothing")
PROTOCOLS = {"strict": STRICT, "paper": PAPER, "warm": WARM, "cold": COLD, "everything": EVERYTHING}


def protocol_named(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise unknown_name("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
