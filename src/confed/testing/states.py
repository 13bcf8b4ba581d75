"""What a trainer's state says, and whether two states are the same."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from confed.clients.gateway import People
from confed.clients.kept_rows import KeptRows
from confed.federations.federated import Federated
from confed.federations.local import LocalFederation
from confed.training import Trainer


def whole_state(trainer: Trainer, people: People | None = None) -> dict[str, Tensor]:
    """The state with every table that clients keep, whichever way it is stored. `people` are some of them, where they
    are not in one place.
    """
    state = dict(trainer.state())
    if isinstance(trainer, Federated) and isinstance(trainer.federation, LocalFederation):
        gateway = trainer.federation.site.gateway
        people = gateway if isinstance(gateway, People) else None
    for table, kept in people.store.by_row.items() if people else ():
        names = [name for name in state if name.startswith(f"client.{table}.")]
        parts = {name.removeprefix(f"client.{table}."): state.pop(name) for name in names}
        twin = KeptRows(kept.start, len(parts["count"]))
        twin.load(parts)
        state[f"client.{table}"] = twin.whole(torch.arange(len(parts["count"])))
    return state


def assert_equal_states(one: Mapping[str, Tensor], other: Mapping[str, Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        _assert_close(name, other[name], value, tolerance, tolerance)


def assert_close_states(one: Mapping[str, Tensor], other: Mapping[str, Tensor], tolerance: float) -> None:
    """Equal but for rounding: differences are held against the largest entry of their tensor."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        largest = float(value.double().abs().max()) if value.numel() else 0.0
        _assert_close(name, other[name].double(), value.double(), 0, tolerance * largest)


def _assert_close(name: str, actual: Tensor, expected: Tensor, relative: float, absolute: float) -> None:
    def named(message: str) -> str:
        return f"{name}: {message}"

    torch.testing.assert_close(actual, expected, rtol=relative, atol=absolute, msg=named)
