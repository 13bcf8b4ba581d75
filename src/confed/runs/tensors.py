"""Named tensors in a safetensors file, written tensor by tensor: large states are never copied as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNED = 8


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """The format: the header's length, the header as JSON, then the tensors one after another.

    The library's own writer first makes a copy of everything. Widest types come first, so that all stay aligned.
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    position = 0
    for name in order:
        tensor = tensors[name]
        end = position + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNED)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in order:
            tensor = tensors[name].detach().contiguous()
            if tensor.numel():
                file.write(tensor.view(-1).view(torch.uint8).numpy().data)


def load_tensors(path: Path, prefix: str = "") -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors whose names begin with `prefix`, and the metadata; SafetensorError if the file is not whole."""
    with safe_open(path, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - not a dict
        return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
