"""A network that makes a client's parameters from a vector of the client (MetaMF's meta recommender).

Of a vector x: c = x M, and for every part of what is made h = ReLU(A c + a), from which its tensors follow as
B h + b. A table of items is the product of two of them, (items, rank) and (rank, width).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from confed.initial import Layers, normal, zeros

Shape = tuple[int, ...]
MEMORY = "memory"


def xavier(shape: Shape) -> float:
    """The deviation with which a matrix neither stretches nor shrinks what it is applied to."""
    return float((2.0 / sum(shape)) ** 0.5)


@dataclass(frozen=True)
class Generator:
    """`table` is made of two factors of `rank`; `parts` have a hidden layer each, for all of their tensors."""

    table: tuple[str, Shape]
    parts: tuple[Mapping[str, Shape], ...]
    width: int
    """Of the vectors."""
    memory: int
    hidden: int
    rank: int

    @property
    def _made(self) -> list[dict[str, Shape]]:
        """By part, what follows from its hidden layer."""
        name, (items, width) = self.table
        factors: dict[str, Shape] = {f"{name}_left": (items, self.rank), f"{name}_right": (self.rank, width)}
        return [*(dict(part) for part in self.parts), factors]

    def layers(self) -> Layers:
        """Shape and start of every parameter: matrices as Xavier has them, normal, and no biases."""
        memory = (self.width, self.memory)
        layers: Layers = {MEMORY: (memory, normal(xavier(memory)))}
        for number, part in enumerate(self._made):
            outputs = {f"hidden_{number}": (self.hidden, self.memory)}
            outputs |= {name: (math.prod(shape), self.hidden) for name, shape in part.items()}
            for name, size in outputs.items():
                layers[f"{name}.weight"] = size, normal(xavier(size))
                layers[f"{name}.bias"] = size[:1], zeros
        return layers

    def make(self, params: Mapping[str, Tensor], vectors: Tensor) -> dict[str, Tensor]:
        """(clients, …) by name, for clients with these vectors (clients, width)."""
        shared = vectors @ params[MEMORY]
        made: dict[str, Tensor] = {}
        for number, part in enumerate(self._made):
            layer = torch.relu(_applied(params, f"hidden_{number}", shared))
            made |= {name: _applied(params, name, layer).view(len(vectors), *shape) for name, shape in part.items()}
        name, _ = self.table
        made[name] = torch.bmm(made.pop(f"{name}_left"), made.pop(f"{name}_right"))
        return made


def _applied(params: Mapping[str, Tensor], name: str, to: Tensor) -> Tensor:
    return linear(to, params[f"{name}.weight"], params[f"{name}.bias"])
