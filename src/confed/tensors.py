"""Named tensors in the safetensors format: as a file, written tensor by tensor so that large states are never copied as
a whole, or as bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from confed.errors import DamagedError
from confed.files import drafted, settle
from confed.seals import Sealed

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What is written, by the format's own names."""
_ALIGNED = 8


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Returns the SHA-256 of what was written. The library's own writer first makes a copy of everything."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in chain([memoryview(header(tensors, metadata))], contents(tensors)):
            file.write(part)
            digest.update(part)
    return digest.hexdigest()


def save_sealed(folder: Path, name: str, tensors: Mapping[str, Tensor]) -> Sealed:
    """A file of `folder` whose own name ends with its digest: it never takes the place of another."""
    with drafted(folder / name) as draft:
        digest = save_tensors(draft, tensors, {})
        sealed = Sealed(f"{name}-{digest[:16]}.safetensors", draft.stat().st_size, digest)
        settle(draft, folder / sealed.name)
    return sealed


def load_sealed(folder: Path, sealed: Sealed) -> dict[str, Tensor]:
    """What `save_sealed` wrote; DamagedError if it is not there as it was."""
    path = sealed.check(folder)
    try:
        return load_tensors(path)[0]
    except SafetensorError as error:
        raise DamagedError(f"{path}: not a file of tensors ({error})") from None


def header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """What stands before the tensors: its own length, then as JSON what they are and where."""
    entries: dict[str, object] = {"__metadata__": dict(metadata)}
    position = 0
    for name in _order(tensors):
        tensor = tensors[name]
        end = position + tensor.numel() * tensor.element_size()
        entries[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % _ALIGNED)
    return len(text).to_bytes(8, "little") + text


def contents(tensors: Mapping[str, Tensor]) -> Iterator[memoryview]:
    """The bytes of one tensor after another."""
    for name in _order(tensors):
        tensor = tensors[name].detach().contiguous()
        if tensor.numel():
            yield tensor.view(-1).view(torch.uint8).numpy().data


def _order(tensors: Mapping[str, Tensor]) -> list[str]:
    """Widest types first, so that all stay aligned."""
    return sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))


def joined(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """All parts in one: a tensor's name is that of its part, a slash, and its own."""
    return {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def part_of(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """What `joined` had below `part`."""
    return {name.removeprefix(f"{part}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{part}/")}


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata; SafetensorError if the file is not whole."""
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 - not a dict
