"""Messages as bytes: named tensors in the safetensors format, held against what both sides declared.

A message says its kind and version and carries a digest of its tensors. Whoever reads it has the schema, and refuses
whatever does not fit before any of it is used: another kind or version, names that were not declared or are missing,
other types, shapes or sizes, numbers that are not finite or out of range, bytes that are not the ones that were
written. The digest finds accidents; who sent a message is for the transport to prove.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from torch import Tensor

from confed.errors import MessageError
from confed.tensors import TYPES, contents, header

VERSION = 1
MOST_BYTES = 1 << 31
"""A longer message is refused unread."""
_HEADER_BYTES = 512
"""Of a header, for each tensor that is declared and once more: names and shapes take less."""


@dataclass(frozen=True)
class Field:
    """A tensor as it was declared. An axis is a size, or the name of one that is the same wherever it stands."""

    dtype: torch.dtype
    shape: tuple[int | str, ...]
    least: int | None = None
    below: int | str | None = None
    """The smallest number that is allowed, and the first that is not; that may be the name of an axis."""
    distinct: bool = False
    """Whether no number may stand there twice."""
    optional: bool = False

    @property
    def values(self) -> int:
        """Numbers of one client, as far as its axes are known."""
        return math.prod(axis for axis in self.shape if isinstance(axis, int))


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
        head, entries = _header(data, schema)
        sizes = _sizes(entries, schema)
        tensors = _tensors(data, head, schema.kind)
        for name, tensor in tensors.items():
            _require_values(name, tensor, schema.fields[name], sizes)
    except MessageError as error:
        raise MessageError(f"{schema.kind} message refused: {error}") from None
    return tensors


def _metadata(kind: str, body: bytes) -> dict[str, str]:
    return {"confed": f"{kind} {VERSION}", "digest": hashlib.blake2b(body, digest_size=16).hexdigest()}


def _header(data: bytes, schema: Schema) -> tuple[bytes, dict[str, Any]]:
    """The header as it stands, and what it says of each tensor. Nothing else has been looked at then."""
    if len(data) > MOST_BYTES:
        raise MessageError(f"it has {len(data):,} bytes, {MOST_BYTES:,} are allowed")
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_HEADER_BYTES * (1 + len(schema.fields)), len(data) - 8):
        raise MessageError(f"these {len(data):,} bytes do not begin with a header")
    head = data[: 8 + length]
    try:
        entries = json.loads(head[8:])
        said = entries.pop("__metadata__")["confed"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise MessageError(f"these {len(data):,} bytes do not begin with a header that says what they are") from None
    if said != f"{schema.kind} {VERSION}":
        raise MessageError(f"it says it is {str(said)[:60]!r}, expected was '{schema.kind} {VERSION}'")
    _require_names(entries, schema)
    return head, entries


def _require_names(entries: Mapping[str, Any], schema: Schema) -> None:
    missing = [name for name, of in schema.fields.items() if name not in entries and not of.optional]
    extra = sorted(entries.keys() - schema.fields.keys())
    if missing or extra:
        found = (("missing", missing), ("not declared", extra))
        raise MessageError("; ".join(f"{text}: {_listed(names)}" for text, names in found if names))


def _listed(names: Sequence[str]) -> str:
    """A few of them; others chose the names, so they are shown as data."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(repr(name[:60]) for name in names[:5]) + more


def _sizes(entries: Mapping[str, Any], schema: Schema) -> dict[str, int]:
    """The sizes of all named axes, which must be the same in all tensors; types must be those declared."""
    sizes = dict(schema.sizes)
    for name, entry in entries.items():
        declared = schema.fields[name]
        dtype, shape = (entry.get(key) if isinstance(entry, dict) else None for key in ("dtype", "shape"))
        if dtype != TYPES[declared.dtype]:
            raise MessageError(f"{name!r} is {str(dtype)[:60]}, declared is {TYPES[declared.dtype]}")
        if not isinstance(shape, list) or not _fits(shape, declared, sizes):
            raise MessageError(f"{name!r} has shape {str(shape)[:60]}, declared is {_shown(declared, sizes)}")
    return sizes


def _fits(shape: Sequence[Any], declared: Field, sizes: dict[str, int]) -> bool:
    """Whether the shape is the declared one; sizes that were not known before are from now on."""
    return len(shape) == len(declared.shape) and all(
        type(size) is int
        and 0 <= size <= MOST_BYTES
        and size == (sizes.setdefault(axis, size) if isinstance(axis, str) else axis)
        for axis, size in zip(declared.shape, shape, strict=True)
    )


def _tensors(data: bytes, head: bytes, kind: str) -> dict[str, Tensor]:
    """Written in the one way in which these tensors are written, with the digest that belongs to them."""
    try:
        tensors = load_bytes(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise MessageError(
            f"its header does not fit its {len(data) - len(head):,} bytes of tensors ({error})"
        ) from None
    if head != header(tensors, _metadata(kind, data[len(head) :])):
        raise MessageError("its digest is that of another message: it was changed on the way")
    return tensors


def _require_values(name: str, tensor: Tensor, declared: Field, sizes: Mapping[str, int]) -> None:
    if not bool(torch.isfinite(tensor).all()):
        raise MessageError(f"{name!r} has numbers that are not finite")
    if declared.distinct and len(torch.unique(tensor)) < len(tensor):
        raise MessageError(f"{name!r} names somebody twice")
    below = sizes.get(declared.below) if isinstance(declared.below, str) else declared.below
    low = declared.least is not None and bool((tensor < declared.least).any())
    if low or (below is not None and bool((tensor >= below).any())):
        allowed = f"{declared.least} to {below - 1}" if below is not None else f"at least {declared.least}"
        raise MessageError(f"{name!r} has {int(tensor.min())} to {int(tensor.max())}, declared is {allowed}")


def _shown(declared: Field, sizes: Mapping[str, int]) -> str:
    known = {axis: f"{axis} = {size}" for axis, size in sizes.items()}
    return f"[{', '.join(known.get(str(axis), str(axis)) for axis in declared.shape)}]"
