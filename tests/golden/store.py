"""The files: one for each method, tensors by case and name, the server's discrete choices in the header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

FOLDER = Path(__file__).parent / "states"
Recorded = tuple[dict[str, Tensor], list[dict[str, Any]]]
"""A state, and what the server noted in every round."""


def tiny_path(method: str) -> Path:
    return FOLDER / f"{method}.safetensors"


def real_path(method: str) -> Path:
    return FOLDER / f"real-{method}.safetensors"


def write(path: Path, states: Mapping[str, Recorded]) -> None:
    FOLDER.mkdir(exist_ok=True)
    tensors = {
        f"{case}/{name}": tensor.contiguous().clone()
        for case, (state, _) in states.items()
        for name, tensor in state.items()
    }
    save_file(tensors, path, {case: json.dumps(notes) for case, (_, notes) in states.items()})


def recorded(path: Path) -> set[str]:
    """The names of the cases in a file."""
    with safe_open(path, "pt") as file:
        return set(file.metadata())


def read(path: Path, case: str) -> Recorded:
    """A case that was never recorded is a KeyError: it is new."""
    with safe_open(path, "pt") as file:
        notes = json.loads(file.metadata()[case])
        names = [name for name in file.keys() if name.startswith(f"{case}/")]  # noqa: SIM118 (no iterator)
        return {name.removeprefix(f"{case}/"): file.get_tensor(name) for name in names}, notes
