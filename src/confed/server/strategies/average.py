"""Averages of all kinds: FedAvg, means over the holders of a row, sums of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from confed.records import Download
from confed.server.strategies.base import Strategy
from confed.server.uploads import Over, SummedUploads, Uploads


class Average(Strategy):
    """One global version of every shared tensor; `plan` says what each is averaged over."""

    needs: ClassVar[Literal["sum", "individual"]] = "sum"

    def __init__(self, plan: Mapping[str, Over]) -> None:
        """A weighted mean needs the clients' numbers of rows, `samples`, and these are declared as an upload.

        A mean over holders needs nothing more: a row that a client did not train equals what it downloaded. (Under
        secure aggregation, where single uploads are not seen, one masked 0 or 1 per item would travel as well.)
        """
        self.plan = dict(plan)
        self.uploads = frozenset(self.plan) | ({"samples"} if "samples" in self.plan.values() else set())

    def start(self, shared: Mapping[str, Tensor], clients: int, seed: int) -> None:
        self._shared = dict(shared)
        self._table_of = torch.zeros(clients, dtype=torch.int64)

    def download(self) -> Download:
        return Download({name: value[None] for name, value in self._shared.items()}, self._table_of)

    def collector(self) -> Uploads:
        return SummedUploads(self.plan, self._shared)

    def aggregate(self, uploads: Uploads, number: int) -> None:
        self._shared = {name: uploads.mean(name, over=self.plan[name]) for name in self._shared}

    def state(self) -> dict[str, Tensor]:
        return dict(self._shared)

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._shared = {name: state[name] for name in self._shared}
