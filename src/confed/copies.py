"""Copies of what clients keep: in memory where that has room, else in a file that is mapped into it.

The file has no name any more once it is mapped, so that it is gone with the process, whatever ends that. It lies where
temporary files do (TMPDIR), and its room is asked for before anything is trained.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import torch
from torch import Tensor

from confed.errors import ConfedError
from confed.files import temporary_prefix

_SPARE = 0.8
"""Of the memory that is free so much may be taken by a copy."""


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Whatever becomes of the tensors."""
    return {name: _copy(tensor) for name, tensor in tensors.items()}


def _copy(tensor: Tensor) -> Tensor:
    if tensor.nbytes <= _SPARE * psutil.virtual_memory().available:
        return tensor.clone()
    require_disk(tensor.nbytes)
    return _mapped(tensor.shape, tensor.dtype).copy_(tensor)


def _mapped(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Zeros in a file."""
    handle, name = tempfile.mkstemp(prefix=temporary_prefix())
    try:
        # Who writes to a map of a file for which the disk has no room is killed: so that is taken now.
        allocate = getattr(os, "posix_fallocate", lambda file, _, length: os.truncate(file, length))
        allocate(handle, 0, shape.numel() * dtype.itemsize)
        return torch.from_file(name, shared=True, size=shape.numel(), dtype=dtype).view(shape)
    finally:
        os.close(handle)
        with suppress(OSError):  # Windows keeps it until it is mapped no more
            Path(name).unlink()


def require_room_for_copies(what: str, nbytes: int, copies: int, remedy: str) -> None:
    """`copies` of something will be held in the end: one in memory, the others there or on the disk."""
    memory = psutil.virtual_memory().total
    if nbytes > _SPARE * memory:
        raise ConfedError(f"{what} takes {_gb(nbytes)} and this machine has {_gb(memory)}: {remedy}")
    if copies * nbytes > memory:
        require_disk((copies - 1) * nbytes)


def require_disk(nbytes: int) -> None:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if nbytes > free:
        raise ConfedError(
            f"what clients keep of the best round takes {_gb(nbytes)}, for which neither memory nor {folder} "
            f"({_gb(free)} free) has room: set TMPDIR to a folder of a larger disk"
        )


def _gb(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB"
