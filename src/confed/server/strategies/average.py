"""Averages of all kinds: FedAvg, means over the holders of a row, sums of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, get_args

import torch
from torch import Tensor

from confed.errors import ConfedError
from confed.messages import Download, Needs, Over
from confed.server.strategies.base import Strategy
from confed.server.uploads import Uploads

_NEEDED: dict[Over, str] = {"samples": "samples", "holders": "held"}


class Average(Strategy[Uploads]):
    """One global version of every shared tensor; `plan` says what each is averaged over."""

    needs: ClassVar[Needs] = "sum"

    def __init__(self, plan: Mapping[str, Over], rate: float = 1.0) -> None:
        """`rate` is that of the server's own step, from what it had to what the clients made of it.

        A weighted mean needs the clients' numbers of rows, `samples`, a mean over holders which rows each of them
        trained, `held`: these are declared as uploads like any other, and so is the loss, which the log has.
        """
        for name, over in plan.items():
            if over not in get_args(Over):
                raise ConfedError(f"a mean of {name!r} over {over!r}: there are {', '.join(get_args(Over))}")
        self.plan = dict(plan)
        self.rate = rate
        needed = {_NEEDED[over] for over in self.plan.values() if over in _NEEDED}
        self.uploads = frozenset({*self.plan, *needed, "loss"})

    def start(self, shared: Mapping[str, Tensor], ids: Tensor, seed: int) -> None:
        self._shared = dict(shared)
        self._table_of = torch.zeros(len(ids), dtype=torch.int64)

    def download(self, clients: Tensor) -> Download:
        return Download({name: value[None] for name, value in self._shared.items()}, self._table_of)

    @property
    def shared(self) -> Mapping[str, Tensor]:
        """The server's version of every tensor."""
        return self._shared

    def aggregate(self, uploads: Uploads, number: int) -> None:
        self._shared = {name: self._next(name, uploads.mean(name)) for name in self._shared}

    def _next(self, name: str, mean: Tensor) -> Tensor:
        return mean if self.rate == 1.0 else torch.lerp(self._shared[name], mean, self.rate)

    def state(self) -> dict[str, Tensor]:
        return dict(self._shared)

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._shared = {name: state[name] for name in self._shared}
