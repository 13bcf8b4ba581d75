"""A server that makes every client's tables and networks when it is asked for them, and learns to make them better.

Clients take turns. Those of one turn get what is made for them, take one step of size 1 on all of it and send the
result: what was sent less what came back is a gradient. It goes back through the generator to the vectors that the
server has of the clients; of the mean over the turn's clients, clipped, all parameters take one step of Adam.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from confed.adam import ADAM, adam_schedule, adam_step
from confed.initial import normal, started
from confed.messages import Download, Needs, Over, Push, addressed
from confed.server.generator import Generator
from confed.server.strategies.base import Strategy
from confed.server.uploads import OpenUploads, places_among

_VECTORS, _FIRST, _SECOND, _STEPS = "vectors", "first", "second", "steps"


class Generated(Strategy[OpenUploads]):
    """`turn`: so many clients take part at once. Decay is that of Adam: a part of the gradient. `deviation` is that
    of the vectors at their start.
    """

    needs: ClassVar[Needs] = "individual"
    moves: ClassVar[bool] = True

    def __init__(
        self, generator: Generator, rate: float, decay: float, clip: float, turn: int, deviation: float = 1.0
    ) -> None:
        self.generator = generator
        self.rate = rate
        self.decay = decay
        self.clip = clip
        self.at_once = turn
        self.deviation = deviation
        self.names = (generator.table[0], *(name for part in generator.parts for name in part))
        self.plan: Mapping[str, Over] = {}
        self.uploads = frozenset({*self.names, "loss"})

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        dtype = shared[self.names[0]].dtype
        layers = {_VECTORS: ((len(ids), self.generator.width), normal(self.deviation)), **self.generator.layers()}
        self._params = {name: value.to(dtype) for name, value in started(seed, layers).items()}
        self._first, self._second = (
            {name: torch.zeros_like(value) for name, value in self._params.items()} for _ in range(2)
        )
        self._steps = 0
        self._ids = ids
        self._seed = seed

    def download(self, clients: Tensor) -> Download:
        with torch.no_grad():
            made = self.generator.make(self._params, self._params[_VECTORS].index_select(0, clients))
        return Download(made, addressed(clients, len(self._ids)))

    def welcome(self, newcomers: int) -> tuple[Download, Push | None]:
        """Whoever has no vector gets what is made of the mean of all."""
        with torch.no_grad():
            made = self.generator.make(self._params, self._params[_VECTORS].mean(dim=0, keepdim=True))
        return Download(made, torch.zeros(newcomers, dtype=torch.int64)), None

    def aggregate(self, uploads: OpenUploads, number: int) -> None:
        clients = places_among(self._ids, uploads.clients)
        leaves = {name: value.detach().requires_grad_() for name, value in self._params.items()}
        made = self.generator.make(leaves, leaves[_VECTORS].index_select(0, clients))
        pulled = self._pulled(uploads, {name: value.detach() for name, value in made.items()})
        found = torch.autograd.grad(
            [made[name] for name in self.names], list(leaves.values()), [pulled[name] for name in self.names]
        )
        self._step(dict(zip(leaves, found, strict=True)))

    def _pulled(self, uploads: OpenUploads, made: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """By name, the gradient by what was made for each of the clients, of the mean over clients."""
        pulled = {name: torch.empty_like(made[name]) for name in self.names}
        for ids, sent in uploads.each(self.names, uploads.clients):
            places = places_among(uploads.clients, ids)
            for name, of in sent.items():
                pulled[name][places] = (made[name][places] - of) / len(uploads.clients)
        return pulled

    def _step(self, gradients: Mapping[str, Tensor]) -> None:
        """In place, the gradients too: there may be many parameters, and many turns."""
        flat = [gradient.view(-1) for gradient in gradients.values()]
        length = float(torch.stack([torch.dot(of, of) for of in flat]).sum().sqrt())
        shrink = min(self.clip / (length + 1e-6), 1.0)
        (rate,), (correction,) = adam_schedule(self.rate, self._steps, 1, ADAM)
        self._steps += 1
        for name, gradient in gradients.items():
            param = self._params[name]
            whole = gradient.mul_(shrink).add_(param, alpha=self.decay)
            told = (param, whole, self._first[name], self._second[name])
            value, slope, first, second = (tensor.view(-1).numpy() for tensor in told)
            adam_step(value, slope, first, second, rate, correction, ADAM)

    def state(self) -> dict[str, Tensor]:
        """In copies, since steps are taken in place."""
        kinds = {"": self._params, f"{_FIRST}.": self._first, f"{_SECOND}.": self._second}
        own = {f"{kind}{name}": value.clone() for kind, of in kinds.items() for name, value in of.items()}
        return own | {_STEPS: torch.tensor(self._steps)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        for kind, of in (("", self._params), (f"{_FIRST}.", self._first), (f"{_SECOND}.", self._second)):
            for name, value in of.items():
                value.copy_(state[f"{kind}{name}"])
        self._steps = int(state[_STEPS])
