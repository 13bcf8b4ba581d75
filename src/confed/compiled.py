"""Compiled loops, for the few places where a batched operation moves far more memory than the arithmetic needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.dispatcher import Dispatcher

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code on first use, kept beside the source like a .pyc file; other threads run meanwhile.

    Sums may be reordered, so that they are vectorised, and multiplications fused; NaN and infinity keep their meaning.
    What it calls becomes part of it. Else code that was kept would take any copy of what it calls that is loaded,
    compiled for another caller, whose sums may be in another order: a resumed run would differ in the last bit.
    """
    fast = {"reassoc", "contract", "nsz"}
    made = numba.njit(nogil=True, cache=True, forceinline=True, fastmath=fast, error_model="numpy")(function)
    sources = _sources(function, set())
    if len(sources) > 1:
        _keep_until_one_changes(made, sources)
    return cast(Function, made)


def _sources(function: Callable[..., Any], known: set[Path]) -> set[Path]:
    """The file of a function, and the files of compiled functions that it imports, which become part of the code."""
    known.add(Path(function.__code__.co_filename))
    for other in list(function.__globals__.values()):
        if isinstance(other, Dispatcher) and Path(other.py_func.__code__.co_filename) not in known:
            _sources(other.py_func, known)
    return known


def _keep_until_one_changes(made: Any, sources: set[Path]) -> None:
    """numba holds what it keeps against the function's own file only, and has no setting for more."""
    stamps = [(str(path), path.stat().st_mtime, path.stat().st_size) for path in sorted(sources)]
    made._cache._cache_file._source_stamp = stamps
