"""What models of data in one place have in common: training, and scoring.

An epoch-trained model takes one epoch a round and is stepped by Adam; a one-shot model (a count, a closed form, a
library's fit) is finished after round 1. Users are scored some after others, so that no users x items matrix exists.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch
from pydantic import Field
from torch import Tensor

from confed.config import MethodConfig
from confed.data.negatives import draw_negatives
from confed.data.split import TrainingData
from confed.models.learner import Learned, Learner
from confed.ragged import Ragged
from confed.random import Stream
from confed.scoring import Scorer
from confed.stateful import Served


class JointModel(Served):
    """One set of parameters, learned from the data of one domain or of several."""

    @property
    @abstractmethod
    def users(self) -> int:
        """How many people it learns from."""

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """How many a row of its loss is about at most: one an item."""

    @abstractmethod
    def train(self, number: int) -> float | None:
        """Train round `number`; the mean loss where there is one."""

    @abstractmethod
    def scorer_of(self, domain: str) -> Scorer:
        """How the model, as it stands, scores users of a domain; work common to all of them is done once, here."""

    @abstractmethod
    def values_of(self, domain: str) -> int:
        """Largest number of intermediate values for a user who is scored."""


class Model(JointModel):
    """A model of the users of `data`, who are of one domain."""

    hidden: int = 1
    """Largest number of intermediate values per scored pair."""

    def __init__(self, data: TrainingData, seed: int, dtype: str) -> None:
        self.data = data
        self.seed = seed
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.strangers = torch.from_numpy(np.flatnonzero(data.positives.lengths == 0))
        """Users of whom nothing is known: they have nothing to train on."""

    def for_scoring(self, users: Tensor) -> Tensor:
        """(users, d) of a model's own making; strangers have what the others have on average."""
        if not len(self.strangers) or len(self.strangers) == len(users):
            return users
        known = torch.ones(len(users), dtype=torch.bool).index_fill_(0, self.strangers, False)
        return users.index_copy(0, self.strangers, users[known].mean(dim=0).expand(len(self.strangers), -1))

    @property
    def users(self) -> int:
        return self.data.users

    @property
    def outcomes(self) -> int:
        return self.data.items

    @abstractmethod
    def scorer(self) -> Scorer:
        """How the model, as it stands, scores users."""

    def scorer_of(self, domain: str) -> Scorer:
        return self.scorer()

    def newcomers(self, histories: Ragged) -> Tensor | None:
        """(newcomers, items): how the model, as it stands, scores people with these items whom it never saw; None where
        it cannot.
        """
        return None

    def item_vectors(self) -> Tensor | None:
        """(items, d), where the model has such."""
        return None

    def values_of(self, domain: str) -> int:
        return self.hidden * self.data.items


class OneShotModel(Model):
    """A model that is fitted in round 1. Further rounds find it finished; nothing changes its tensors."""

    model: dict[str, Tensor]

    def __init__(self, data: TrainingData, seed: int, dtype: str) -> None:
        super().__init__(data, seed, dtype)
        self.model = {}

    @abstractmethod
    def fit(self) -> dict[str, Tensor]:
        """The finished model, by name."""

    def train(self, number: int) -> float | None:
        if not self.model:
            self.model = self.fit()
        return None

    def state(self) -> dict[str, Tensor]:
        return dict(self.model)

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.model = dict(state)

    def serving_state(self) -> dict[str, Tensor]:
        return self.state()

    def load_serving(self, state: Mapping[str, Tensor]) -> None:
        self.load(state)


class EpochModel(Learned, Model):
    """A model whose parameters Adam steps; a round is an epoch."""

    def __init__(
        self, data: TrainingData, seed: int, dtype: str, params: Mapping[str, Tensor], learning_rate: float
    ) -> None:
        super().__init__(data, seed, dtype)
        self.learner = Learner(params, learning_rate, self.dtype)
        self.params = self.learner.params
        self.adam = self.learner.adam

    @abstractmethod
    def epoch(self, number: int) -> float:
        """One pass over the data; the mean loss of its rows, each before the step it takes part in."""

    def train(self, number: int) -> float:
        return self.epoch(number)


class PointwiseConfig(MethodConfig):
    """What the models of single (user, item, label) rows have in common."""

    dim: int = Field(default=32, ge=1)
    """Width of user and item vectors."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Adam's step size."""
    batch_size: int = Field(default=256, ge=1)
    """Rows per step."""
    train_negatives: int = Field(default=4, ge=1)
    """Sampled negatives per positive, redrawn every epoch."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial vectors."""


class PointwiseModel(EpochModel):
    """Learns from rows (user, item, label): every positive, and q sampled negatives for each."""

    def __init__(
        self, data: TrainingData, seed: int, dtype: str, params: Mapping[str, Tensor], config: PointwiseConfig
    ) -> None:
        super().__init__(data, seed, dtype, params, config.learning_rate)
        self.negatives = config.train_negatives
        self.batch_size = config.batch_size

    def rows(self, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """Users, items and labels of epoch `number`, shuffled over all users."""
        streams = Stream.of(self.seed, "negatives", number), Stream.of(self.seed, "shuffle", number)
        return labelled_rows(self.data, self.negatives, *streams, self.dtype)


def labelled_rows(
    data: TrainingData, negatives: int, draws: Stream, shuffle: Stream, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Users, items and labels: every positive, and `negatives` sampled ones for each, in random order."""
    drawn = draw_negatives(data, np.arange(data.users), negatives, draws)
    items = np.concatenate([data.positives.values[:, None], drawn], axis=1)
    order = shuffle.order(items.size)
    positive, place = np.divmod(order, 1 + negatives)
    users = data.positives.row_of[positive]
    labels = torch.from_numpy(place == 0).to(dtype)
    return torch.from_numpy(users), torch.from_numpy(items.reshape(-1)[order]), labels


def interaction_matrix(data: TrainingData, dtype: torch.dtype) -> scipy.sparse.csr_matrix:
    """(users, items): 1 where the user has the item in training. Repeated pairs count once."""
    pairs = data.positives.unique()
    ones = np.ones(len(pairs.values), dtype=_numpy(dtype))
    return scipy.sparse.csr_matrix((ones, pairs.values, pairs.offsets), shape=(data.users, data.items))


def _numpy(dtype: torch.dtype) -> np.dtype[Any]:
    array: np.dtype[Any] = torch.empty(0, dtype=dtype).numpy().dtype
    return array
