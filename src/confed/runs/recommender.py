"""The shortest way from a data frame to recommendations, in Python."""

from __future__ import annotations

from typing import Any

from confed.errors import ConfedError
from confed.runs.api import DEFAULT_METHOD, run
from confed.runs.finished import Run
from confed.runs.offers import Recommendation


class Recommender:
    """The shortest way from a data frame to recommendations.

    >>> Recommender(method="pfedrec").fit(my_dataframe).recommend("alice", k=10)

    `options` are hyper-parameters of the method and switches of the protocol.
    """

    def __init__(
        self, method: str = DEFAULT_METHOD, *, rounds: int | None = None, seed: int = 0, **options: Any
    ) -> None:
        self.method = method
        self.rounds = rounds
        self.seed = seed
        self.options = options
        self._run: Run | None = None

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"Recommender({said})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As scikit-learn has it: what the constructor was told."""
        return {"method": self.method, "rounds": self.rounds, "seed": self.seed, **self.options}

    def set_params(self, **params: Any) -> Recommender:
        """Change what the constructor was told; what was learned is forgotten."""
        Recommender.__init__(self, **{**self.get_params(), **params})
        return self

    @property
    def run(self) -> Run:
        """What `fit` did."""
        if self._run is None:
            raise ConfedError("nothing is learned yet: call fit(data) first")
        return self._run

    def fit(self, data: Any, **arguments: Any) -> Recommender:
        """Train on a data frame, a file, a registry name or `Interactions`; two items a user are held out, or with
        `holdout=False` none.

        `arguments` are those of `run`: `user` and `item` name the columns, if they have unusual names.
        """
        self._run = run(self.method, data, rounds=self.rounds, seed=self.seed, options=self.options, **arguments)
        return self

    def recommend(self, user: str | int | None = None, k: int = 10, **arguments: Any) -> list[Recommendation]:
        """See `Run.recommend`."""
        return self.run.recommend(user, k, **arguments)
