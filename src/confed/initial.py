"""How parameters begin: functions of a shape and a generator, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from confed.random import keyed
from confed.room import require_room

_BYTES = 8 + 4 * 4
"""Of a number at its start, and later with its gradient and the two moments of Adam."""
Initialiser = Callable[[tuple[int, ...], torch.Generator], Tensor]


def normal(deviation: float) -> Initialiser:
    def draw(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return deviation * torch.randn(shape, generator=generator, dtype=torch.float64)

    return draw


def uniform(bound: float) -> Initialiser:
    def draw(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return bound * (2.0 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1.0)

    return draw


def zeros(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def ones(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.ones(shape, dtype=torch.float64)


def glorot(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Uniform, so that a matrix neither stretches nor shrinks what it is applied to (Glorot and Bengio 2010)."""
    return uniform((6.0 / sum(shape)) ** 0.5)(shape, generator)


def orthogonal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """A square matrix that turns and mirrors, drawn evenly from all that do (Mezzadri 2007)."""
    turned, triangle = torch.linalg.qr(torch.randn(shape, generator=generator, dtype=torch.float64))
    found: Tensor = turned * triangle.diagonal().sign()
    return found.contiguous()  # it lies by columns, and torch's fused Adam takes its moments as they lie


def initial(seed: int, name: str, shape: tuple[int, ...], draw: Initialiser) -> Tensor:
    """The start of the parameter `name`."""
    require_room_for(name, shape)
    return draw(shape, keyed(seed, "init", name))


def require_room_for(name: str, shape: tuple[int, ...]) -> None:
    """The parameter `name` must fit into memory."""
    size = " x ".join(f"{extent:,}" for extent in shape)
    require_room(f"the {size} numbers of the parameter {name!r}", math.prod(shape) * _BYTES, "lower `dim`")


Layers = dict[str, tuple[tuple[int, ...], Initialiser]]
"""Shape and start of every parameter."""


def started(seed: int, layers: Layers) -> dict[str, Tensor]:
    """The starts of all parameters, by name."""
    return {name: initial(seed, name, shape, draw) for name, (shape, draw) in layers.items()}


def linear_layer(name: str, inputs: int, outputs: int) -> Layers:
    """Weight and bias, which begin as torch's do: uniform in ±1/√inputs."""
    draw = uniform(inputs**-0.5)
    return {name: ((outputs, inputs), draw), f"{name}_bias": ((outputs,), draw)}
