"""What the names in files mean to a reader: `full_hr@10` is HR@10 with all items ranked, `local` a way to be scored."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"(?P<ranking>full_|neg\d+_|)(?P<kind>[a-z]+)@(?P<cutoff>\d+)")
_MEANINGS = {
    "hr": "the share of held-out items that stand among the first {k}",
    "ndcg": "the same, and a hit counts the less the lower it stands",
    "mrr": "one divided by the place of the held-out item, 0 beyond the first {k}",
    "recall": "the share of held-out items that stand among the first {k}",
    "precision": "the share of the first {k} that were held out",
}
_VIEWS = {
    "local": "as each client tuned it",
    "global": "with what the server made of all",
    "pushed": "as the server's step left each client",
    "ensemble": "by the mean of the scores of everybody's model, the group's, and of those who took part their own",
    "reconstructed": "with what the server made of all, and what each client reconstructed for itself",
}


@dataclass(frozen=True)
class Metric:
    """The name of a metric, taken apart."""

    ranking: str
    """Against what is ranked: `full_`, `neg999_`, or nothing for the sampled candidates of the protocol."""
    kind: str
    cutoff: int

    @classmethod
    def named(cls, name: str) -> Metric:
        """From a name as summaries and metrics.jsonl have it."""
        found = _NAME.fullmatch(name)
        if found is None:
            raise ValueError(f"{name!r} is no metric's name")
        return cls(found["ranking"], found["kind"], int(found["cutoff"]))

    @property
    def short(self) -> str:
        return f"{self.kind.upper()}@{self.cutoff}"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self.kind].format(k=self.cutoff)

    def against(self, negatives: int) -> str:
        """What was ranked, where the protocol samples so many `negatives`."""
        if self.ranking == "full_":
            return "all items ranked"
        return f"{self.ranking.removeprefix('neg').rstrip('_') or negatives} sampled candidates"

    def in_words(self, negatives: int) -> str:
        """Such as "HR@10, all items ranked"."""
        return f"{self.short}, {self.against(negatives)}"


def view_in_words(view: str, *, has_clients: bool = True) -> str:
    """With what users are scored; where all data is in one place, there is one way only."""
    return _VIEWS[view] if has_clients else "by the one model there is"
