"""Messages as bytes: named tensors in the safetensors format, held against what both sides declared.

A message says its kind and version and carries a digest of its tensors. Whoever reads it has the schema, and refuses
whatever does not fit before any of it is used: another kind or version, names that were not declared or are missing,
other types, shapes or sizes, numbers that are not finite or out of range, bytes that are not the ones that were
written. The digest finds accidents; who sent a message is for the transport to prove.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from torch import Tensor

from confed.errors import MessageError
from confed.tensors import contents, header

VERSION = 1
MOST_BYTES = 1 << 31
"""A longer message is refused unread."""


@dataclass(frozen=True)
class Field:
    """A tensor as it was declared. An axis is a size, or the name of one that is the same wherever it stands."""

    dtype: torch.dtype
    shape: tuple[int | str, ...]
    least: int | None = None
    below: int | str | None = None
    """Of whole numbers: the smallest that is allowed, and the first that is not; that may be the name of an axis."""
    optional: bool = False


@dataclass(frozen=True)
class Schema:
    """A kind of message: its tensors by name, and the sizes of named axes as far as they are known beforehand."""

    kind: str
    fields: Mapping[str, Field]
    sizes: Mapping[str, int] = field(default_factory=dict)


def encode(kind: str, tensors: Mapping[str, Tensor]) -> bytes:
    """The same tensors always give the same bytes."""
    body = b"".join(contents(tensors))
    return header(tensors, _metadata(kind, body)) + body


def decode(data: bytes, schema: Schema) -> dict[str, Tensor]:
    """The tensors of a message that fits its schema; all else is a `MessageError` that says what does not fit."""
    try:
        tensors = _read(data, schema.kind)
        _require_names(tensors, schema)
        sizes = _sizes(tensors, schema)
        for name, tensor in tensors.items():
            _require_values(name, tensor, schema.fields[name], sizes)
    except MessageError as error:
        raise MessageError(f"{schema.kind} message refused: {error}") from None
    return tensors


def _metadata(kind: str, body: bytes) -> dict[str, str]:
    return {"confed": f"{kind} {VERSION}", "digest": hashlib.blake2b(body, digest_size=16).hexdigest()}


def _read(data: bytes, kind: str) -> dict[str, Tensor]:
    if len(data) > MOST_BYTES:
        raise MessageError(f"it has {len(data):,} bytes, {MOST_BYTES:,} are allowed")
    try:
        tensors = load_bytes(data)
        length = 8 + int.from_bytes(data[:8], "little")
        said = json.loads(data[8:length]).get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MessageError(f"these {len(data):,} bytes are no tensors ({error})") from None
    if said.get("confed") != f"{kind} {VERSION}":
        raise MessageError(f"it says it is {said.get('confed')!r}, expected was '{kind} {VERSION}'")
    if data[:length] != header(tensors, _metadata(kind, data[length:])):
        raise MessageError("its digest is that of another message: it was changed on the way")
    return tensors


def _require_names(tensors: Mapping[str, Tensor], schema: Schema) -> None:
    missing = [name for name, of in schema.fields.items() if name not in tensors and not of.optional]
    extra = sorted(tensors.keys() - schema.fields.keys())
    if missing or extra:
        said = [
            f"{text}: {', '.join(names)}" for text, names in (("missing", missing), ("not declared", extra)) if names
        ]
        raise MessageError("; ".join(said))


def _sizes(tensors: Mapping[str, Tensor], schema: Schema) -> dict[str, int]:
    """The sizes of all named axes, which must be the same in all tensors."""
    sizes = dict(schema.sizes)
    for name, tensor in tensors.items():
        declared = schema.fields[name]
        if tensor.dtype != declared.dtype:
            raise MessageError(f"{name!r} is {_name(tensor.dtype)}, declared is {_name(declared.dtype)}")
        fits = tensor.dim() == len(declared.shape) and all(
            size == (sizes.setdefault(axis, size) if isinstance(axis, str) else axis)
            for axis, size in zip(declared.shape, tensor.shape, strict=True)
        )
        if not fits:
            raise MessageError(f"{name!r} has shape {tuple(tensor.shape)}, declared is {_shown(declared, sizes)}")
    return sizes


def _require_values(name: str, tensor: Tensor, declared: Field, sizes: Mapping[str, int]) -> None:
    if not bool(torch.isfinite(tensor).all()):
        raise MessageError(f"{name!r} has numbers that are not finite")
    below = sizes.get(declared.below) if isinstance(declared.below, str) else declared.below
    low = declared.least is not None and bool((tensor < declared.least).any())
    if low or (below is not None and bool((tensor >= below).any())):
        allowed = f"{declared.least} to {below - 1}" if below is not None else f"at least {declared.least}"
        raise MessageError(f"{name!r} has {int(tensor.min())} to {int(tensor.max())}, declared is {allowed}")


def _shown(declared: Field, sizes: Mapping[str, int]) -> str:
    axes = [
        f"{axis} = {sizes[axis]}" if isinstance(axis, str) and axis in sizes else str(axis) for axis in declared.shape
    ]
    return f"({', '.join(axes)})"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
