"""ETL: two domains' autoencoders with a map between them, in one place (Chen et al. 2023; decisions.md "etl").

    h_x = Enc_x(dropout(x_u)),  h_y = Enc_y(dropout(y_u)),   Enc = Linear–ReLU–Linear
    f_x = h_x + e_u,  f_y = h_y + e_u,  z = ReLU(f),         e_u is the user's embedding in both domains
    x̂ = Dec_x(z_x),  ŷ = Dec_y(z_y),  across: ŷ' = Dec_y(z_x W),  x̂' = Dec_x(z_y Wᵀ)
    model            BCE sums of the four + λ_r (|z_x − z_x W Wᵀ|₁ + |z_y − z_y Wᵀ W|₁) + Σ_k BCE(T_k(f_k), 1)
    discriminators   Σ_k BCE(T_k(g), 1) + BCE(T_k(f_k), 0),  g ~ N(0, 1),  T = Linear–ReLU–dropout–Linear

All sums run over the people of a batch and, for reconstructions, over items. Every third batch trains the
discriminators (SGD), the others the model (Adam). Both optimisers add weight decay to the gradient of the sum, as
torch's do. A round is an epoch. Scores are the domain's own decoder's, Dec_x(z_x) and Dec_y(z_y); of a cold user, whom
only the other domain knows, they are those across.

A person is everybody whom one of the domains has. Somebody without training interactions in a domain is not known
there: his row is not a row of dislikes, so only the terms of the other domain count for him, and none across.

ETL is for two domains; of more, pairs are taken, each by itself (D-31).

Deviations from the published code:
- The decoders are one linear layer, there Linear–ReLU–Linear (width 200 in between).
- Batches are counted on from epoch to epoch, there anew in every epoch: data of fewer than three batches would never
  train its discriminators, and data of four would train them in every fourth.
- Rows are never dense (`confed.models.binary_rows`); the code holds both (users, items) matrices.
- One round is reported, there the best of every metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from confed.config import MethodConfig
from confed.data.domain_split import DomainSplit
from confed.initial import Layers, linear_layer, normal, started, uniform
from confed.models.base import JointModel
from confed.models.binary_rows import dropout_factors, reconstruction, summed
from confed.models.learner import Learner
from confed.models.two_domains import persons, two_of
from confed.ragged import Ragged
from confed.random import keyed, standard_normal
from confed.scoring import Scorer
from confed.tensors import part_of

_DISCRIMINATORS_EVERY = 3
"""One batch in so many trains the discriminators."""


class ETLConfig(MethodConfig):
    dim: int = Field(default=200, ge=1)
    """Width of embeddings and hidden layers; the discriminators' hidden layer has half of it."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Step size, of the model's Adam and of the discriminators' SGD."""
    batch_size: int = Field(default=256, ge=1)
    """People per step."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Share of a row's ones, and of the discriminators' hidden values, that a step does not see."""
    weight_decay: float = Field(default=0.001, ge=0)
    """L2 pull of all parameters towards 0, added to the gradient of a batch's sum."""
    orthogonality: float = Field(default=1.0, ge=0)
    """λ_r, the weight of mapping there and back; published: 5, 0.5 or 1, by data set."""
    init_deviation: float = Field(default=0.01, gt=0)
    """Standard deviation of the initial embeddings of people."""


class ETLModel(JointModel):
    """The model under `model/` in the state, the discriminators under `discriminators/`."""

    def __init__(self, config: ETLConfig, cut: DomainSplit, seed: int, dtype: str) -> None:
        self.names = two_of(cut, "etl")
        self.config = config
        self.seed = seed
        self.persons = persons(cut)
        self.people = 1 + max(int(numbers.max()) for numbers in self.persons.values())
        self.items = {name: part.items for name, part in cut.parts.items()}
        self.rows = {name: self._rows_of_people(name, cut) for name in self.names}
        self.known = {name: torch.from_numpy(rows.lengths > 0) for name, rows in self.rows.items()}
        self._make(getattr(torch, dtype))

    def _rows_of_people(self, name: str, cut: DomainSplit) -> Ragged:
        pairs = cut.parts[name].training.positives.unique()
        return Ragged.group(self.persons[name].numpy()[pairs.row_of], pairs.values, self.people)

    def _make(self, dtype: torch.dtype) -> None:
        """Parameters and optimisers."""
        config = self.config
        self.learner = Learner(started(self.seed, self._model_layers()), config.learning_rate, dtype)
        self.learner.adam.param_groups[0]["weight_decay"] = config.weight_decay
        self.params = self.learner.params
        judges = started(self.seed, self._judge_layers())
        self.judges = {name: value.to(dtype) for name, value in judges.items()}
        for value in chain(self.params.values(), self.judges.values()):
            value.requires_grad_()
        # Without momentum SGD remembers nothing: its parameters are its whole state.
        self.sgd = torch.optim.SGD(
            list(self.judges.values()), lr=config.learning_rate, weight_decay=config.weight_decay
        )

    def _model_layers(self) -> Layers:
        dim = self.config.dim
        layers: Layers = {
            "people": ((self.people, dim), normal(self.config.init_deviation)),
            "map": ((dim, dim), uniform((6 / dim) ** 0.5)),  # Glorot's bound with the published gain, √2
        }
        for name, items in self.items.items():
            layers[f"{name}.input"] = (items, dim), uniform(items**-0.5)
            layers[f"{name}.input_bias"] = (dim,), uniform(items**-0.5)
            layers |= linear_layer(f"{name}.feature", dim, dim) | linear_layer(f"{name}.output", dim, items)
        return layers

    def _judge_layers(self) -> Layers:
        half = max(self.config.dim // 2, 1)
        layers: Layers = {}
        for name in self.names:
            layers |= linear_layer(f"{name}.judge", self.config.dim, half) | linear_layer(f"{name}.verdict", half, 1)
        return layers

    def train(self, number: int) -> float | None:
        return self.epoch(number)

    @property
    def users(self) -> int:
        return self.people

    @property
    def outcomes(self) -> int:
        return sum(self.items.values())

    def epoch(self, number: int) -> float | None:
        """One pass over all people; the model's mean loss of those it was trained on, None if there were none."""
        order = torch.randperm(self.people, generator=keyed(self.seed, "shuffle", number))
        batches = torch.split(order, self.config.batch_size)
        total, trained = 0.0, 0
        for step, people in enumerate(batches):
            draw = _Draws(self.seed, number, step)
            if ((number - 1) * len(batches) + step + 1) % _DISCRIMINATORS_EVERY:
                total += self._train_model(people, draw)
                trained += len(people)
            else:
                self._train_judges(people, draw)
        return total / trained if trained else None

    def _train_model(self, people: Tensor, draw: _Draws) -> float:
        loss = self.model_loss(people, draw)
        self.learner.step(loss)
        return float(loss.detach())

    def _train_judges(self, people: Tensor, draw: _Draws) -> None:
        loss = self.judges_loss(people, draw)
        self.sgd.zero_grad()
        torch.autograd.backward(loss)
        self.sgd.step()

    def model_loss(self, people: Tensor, draw: _Draws) -> Tensor:
        """Reconstructions within and across domains, the map's way there and back, and what the judges say."""
        total = self.params["map"].new_zeros(())
        both = self._known_among(people, *self.names)
        for name, other in (self.names, self.names[::-1]):
            mine = self._known_among(people, name)
            features = self.features(name, mine, draw(f"dropout {name}"))
            latent = torch.relu(features)
            there = self.mapped(latent, name)
            back = (latent - self.mapped(there, other)).abs().sum()
            across = self.decode(other, there[self.known[other].index_select(0, mine)])
            fooled = self.judge(name, features, draw(f"judge {name}"))
            total = total + reconstruction(self.decode(name, latent), self._rows(name, mine))
            total = total + reconstruction(across, self._rows(other, both))
            total = total + self.config.orthogonality * back + functional.softplus(-fooled).sum()
        return total

    def judges_loss(self, people: Tensor, draw: _Draws) -> Tensor:
        """Cross-entropy of telling N(0, 1) from the features; both judges see the same draws from N(0, 1)."""
        prior = standard_normal(self.params["people"].index_select(0, people), draw("prior"))
        total = prior.new_zeros(())
        for name in self.names:
            with torch.no_grad():
                features = self.features(name, self._known_among(people, name), draw(f"dropout {name}"))
            real = self.judge(name, prior[self.known[name].index_select(0, people)], draw(f"judge prior {name}"))
            fake = self.judge(name, features, draw(f"judge {name}"))
            total = total + functional.softplus(-real).sum() + functional.softplus(fake).sum()
        return total

    def _known_among(self, people: Tensor, *names: str) -> Tensor:
        """Those of `people` whom all of the domains know, in the same order."""
        return people[torch.stack([self.known[name].index_select(0, people) for name in names]).all(dim=0)]

    def _rows(self, name: str, people: Tensor) -> Ragged:
        return self.rows[name].take(people.numpy())

    def features(self, name: str, people: Tensor, dropout: torch.Generator | None = None) -> Tensor:
        """f: what a domain sees in `people`, with ones of their rows struck out by `dropout` if it is given."""
        params = self.params
        entered = summed(self._rows(name, people), params[f"{name}.input"], self.config.dropout, dropout)
        hidden = torch.relu(entered + params[f"{name}.input_bias"])
        seen = functional.linear(hidden, params[f"{name}.feature"], params[f"{name}.feature_bias"])
        return seen + params["people"].index_select(0, people)

    def mapped(self, latent: Tensor, name: str) -> Tensor:
        """From domain `name` to the other one: by W from the first, by Wᵀ from the second."""
        return latent @ (self.params["map"] if name == self.names[0] else self.params["map"].T)

    def decode(self, name: str, latent: Tensor) -> Tensor:
        """(n, items) logits."""
        return functional.linear(latent, self.params[f"{name}.output"], self.params[f"{name}.output_bias"])

    def judge(self, name: str, features: Tensor, dropout: torch.Generator) -> Tensor:
        """(n,) logits of being drawn from N(0, 1)."""
        params = self.judges
        hidden = torch.relu(functional.linear(features, params[f"{name}.judge"], params[f"{name}.judge_bias"]))
        kept = hidden * dropout_factors(hidden.shape, self.config.dropout, dropout, hidden.dtype)
        return functional.linear(kept, params[f"{name}.verdict"], params[f"{name}.verdict_bias"])[:, 0]

    @torch.no_grad()
    def scorer_of(self, domain: str) -> Scorer:
        """Of the users of a domain, by its own numbers."""
        people, (other,) = self.persons[domain], (name for name in self.names if name != domain)
        latent = torch.relu(self.features(domain, people))
        cold = ~self.known[domain][people] & self.known[other][people]
        latent[cold] = self.mapped(torch.relu(self.features(other, people[cold])), other)

        @torch.no_grad()
        def score(clients: Tensor) -> Tensor:
            return self.decode(domain, latent.index_select(0, clients))

        return score

    def values_of(self, domain: str) -> int:
        return self.items[domain]

    def state(self) -> dict[str, Tensor]:
        judges = {f"discriminators/{name}": value.detach() for name, value in self.judges.items()}
        return {f"model/{name}": value for name, value in self.learner.state().items()} | judges

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.learner.load(part_of(state, "model"))
        with torch.no_grad():
            for name, value in self.judges.items():
                value.copy_(state[f"discriminators/{name}"])

    def serving_state(self) -> dict[str, Tensor]:
        return {f"model/{name}": value for name, value in self.learner.parameters().items()}

    def load_serving(self, state: Mapping[str, Tensor]) -> None:
        self.learner.load_params(part_of(state, "model"))


@dataclass(frozen=True)
class _Draws:
    """The random numbers of one step, by purpose."""

    seed: int
    number: int
    step: int

    def __call__(self, purpose: str) -> torch.Generator:
        return keyed(self.seed, purpose, self.number, self.step)
